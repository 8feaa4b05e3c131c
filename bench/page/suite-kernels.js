// Kernels, ours and the peers' in turns: GPU time of one pass over many operands, a node's share.

import { boundOf } from './limits.js';
import { summary } from './measure.js';

/**
 * @param {Record<string, any>[]} cases see cases.js
 * @param {any} context see main.js
 */
export async function runKernels(cases, context) {
  const { ours, peers, limits, log, software, quick } = context;
  const rounds = quick ? 1 : 3;
  const how = software
    ? { budgetMs: quick ? 200 : 1000, warmMs: 0, least: 1, most: 10 }
    : { budgetMs: quick ? 30 : 100, warmMs: 30, least: 3, most: 40 };
  for (const one of cases.filter((c) => context.keep(c.case))) {
    const samples = new Map();
    const errors = [];
    try {
      const { dispatches } = await ours.call('prepare', one);
      const ready = [];
      for (const peer of peers) {
        const engine = await peer.prepare(one).catch((error) => errors.push(`${peer.name}: ${error.message}`) && null);
        if (engine) ready.push(engine);
      }
      for (let round = 0; round < rounds; round++) {
        gather(samples, 'ours', await ours.call('time', how), one.repeat);
        for (const engine of ready) gather(samples, engine.name, await engine.time(how), one.repeat);
      }
      await report(one, dispatches, samples, errors);
    } catch (error) {
      errors.push(error.message);
      await report(one, 0, samples, errors);
    }
  }
  await ours.call('release');

  async function report(one, dispatches, samples, errors) {
    const mine = samples.has('ours') ? summary(samples.get('ours')) : null;
    const theirs = [...samples].filter(([name]) => name !== 'ours').map(([name, found]) => ({ name, ...summary(found) }));
    // A kernel has several peers at most; the row is against the fastest.
    const best = theirs.sort((a, b) => a.ms - b.ms)[0];
    const bound = boundOf(limits, one);
    const row = {
      suite: 'kernels', case: one.case, ours: one.op, ours_ms: mine?.ms ?? null,
      peer: best?.name ?? null, peer_version: best ? context.versions[best.name.split(' ')[0]] : null, peer_ms: best?.ms ?? null,
      ratio: mine && best ? best.ms / mine.ms : null,
      share_of_limit: mine ? bound.ms / mine.ms : null,
      limited_by: bound.by, ours_spread: mine?.spread ?? null, peer_spread: best?.spread ?? null,
      nodes: one.repeat, dispatches: dispatches / one.repeat, nbytes: one.nbytes, flops: one.flops,
      ...(errors.length && { errors }),
    };
    await context.row(row);
    const us = (ms) => (ms === null ? '-' : `${(1000 * ms).toFixed(1)} us`);
    await log(`${one.case}  ${us(row.ours_ms)} (${((row.share_of_limit ?? 0) * 100).toFixed(1)} % of ${bound.by})  ${row.peer ?? ''} ${us(row.peer_ms)}  ${errors.join('; ')}`);
  }
}

function gather(samples, name, found, nodes) {
  samples.set(name, [...(samples.get(name) ?? []), ...found.map((ms) => ms / nodes)]);
}
