// Kernels, ours and the peers' in turns: GPU time of one pass over many operands, a node's share.

import { boundOf } from './limits.js';
import { summary } from './measure.js';

const OURS = 'webgpu_py';

// Those of one key together, the cheapest first: what there is no time for is the largest.
function cheapestFirst(cases) {
  const cost = (group) => Math.max(...group.map((c) => c.flops * c.repeat));
  return [...Map.groupBy(cases, (c) => c.key).values()].sort((a, b) => cost(a) - cost(b)).flat();
}

/**
 * @param {Record<string, any>[]} cases see cases.js
 * @param {any[]} peers engines as ort-kernels.js makes them
 * @param {any} context see main.js
 */
export async function runKernels(cases, peers, context) {
  const { ours, log, software, quick } = context;
  const rounds = quick ? 1 : 3;
  const how = software
    ? { budgetMs: quick ? 100 : 400, warmMs: 0, least: 1, most: 10 }
    : { budgetMs: quick ? 30 : 100, warmMs: 30, least: 3, most: 40 };
  for (const one of cheapestFirst(cases.filter((c) => context.keep(c.case)))) {
    if (one.tooLong || context.late()) {
      context.leaveOut([one.case]);
      continue;
    }
    const samples = new Map();
    const failed = new Map();
    let plan = null;
    const engines = [];
    const attempt = async (name, act) => {
      try {
        return await act();
      } catch (error) {
        failed.set(name, error.message);
        return null;
      }
    };
    const prepared = await attempt(OURS, () => ours.call('prepare', one));
    if (prepared) {
      plan = { ours_ran: prepared.ran, dispatches: prepared.dispatches / one.repeat };
      engines.push({ name: OURS, time: (given) => ours.call('time', given), release() {} });
    }
    for (const peer of peers) {
      const engine = await attempt(peer.name, () => peer.prepare(one));
      if (engine) engines.push(engine);
    }
    for (let round = 0; round < rounds; round++) {
      for (const { name, time } of engines.filter((e) => !failed.has(e.name))) {
        await context.raiseClock();
        const found = await attempt(name, () => time(how));
        if (found) samples.set(name, [...(samples.get(name) ?? []), ...found.map((ms) => ms / one.repeat)]);
      }
    }
    for (const engine of engines) engine.release();
    await report(one, plan, samples, failed, peers, context);
  }
  await ours.call('release');
  for (const peer of peers) await peer.release();
  await log('kernels: done');
}

/** A row a peer, or one without a peer. */
async function report(one, plan, samples, failed, peers, context) {
  const found = new Map([...samples].filter(([name]) => !failed.has(name)).map(([name, all]) => [name, summary(all)]));
  const mine = found.get(OURS);
  const bound = boundOf(context.limits, one);
  const names = peers.map((p) => p.name).filter((name) => found.has(name) || failed.has(name));
  for (const name of names.length ? names : [null]) {
    const theirs = found.get(name);
    const notes = [OURS, name].filter((n) => failed.has(n)).map((n) => `${n}: ${failed.get(n)}`);
    await context.row({
      suite: 'kernels', case: one.case,
      ours: one.op, ours_ms: mine?.ms ?? null,
      peer: name, peer_version: name && context.versions[name.split(' ')[0]], peer_ms: theirs?.ms ?? null,
      ratio: mine && theirs ? theirs.ms / mine.ms : null,
      share_of_limit: mine ? bound.ms / mine.ms : null, limited_by: bound.by,
      ours_spread: mine?.spread ?? null, peer_spread: theirs?.spread ?? null,
      nodes: one.repeat, ...plan, nbytes: one.nbytes, flops: one.flops,
      ...(notes.length && { note: notes.join('; ') }),
    });
  }
  const us = (summed) => (summed ? `${(1000 * summed.ms).toFixed(1)} us` : '-');
  const share = mine ? ` (${((100 * bound.ms) / mine.ms).toFixed(1)} % of ${bound.by})` : '';
  const others = names.map((name) => `${name} ${failed.get(name) ?? us(found.get(name))}`).join('  ');
  await context.log(`${one.case}  ${us(mine)}${share}  ${failed.get(OURS) ?? ''}  ${others}`);
}
