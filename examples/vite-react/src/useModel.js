import { useEffect, useState } from 'react';
import { load } from 'webgpu-py';

/** A model as React state: `{llm, progress, error}`. It is loaded once and closed with the component. */
export function useModel(url) {
  const [state, setState] = useState({});
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const options = { signal, pyodideURL: import.meta.env.VITE_PYODIDE, onProgress: (progress) => setState({ progress }) };
    const loading = load(url, options);
    loading.then(
      (llm) => setState({ llm }),
      (error) => signal.aborted || setState({ error }),
    );
    return () => {
      // Strict mode mounts twice: the first load ends here, wherever it is.
      controller.abort();
      loading.then((llm) => llm.close(), () => {});
    };
  }, [url]);
  return state;
}
