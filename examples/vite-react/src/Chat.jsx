import { useState } from 'react';
import { useModel } from './useModel.js';

export function Chat({ model }) {
  const { llm, progress, error } = useModel(model);
  const [answer, setAnswer] = useState('');
  const [busy, setBusy] = useState(false);

  async function ask(event) {
    event.preventDefault();
    const question = new FormData(event.currentTarget).get('question');
    setBusy(true);
    setAnswer('');
    try {
      for await (const text of llm.chat([{ role: 'user', content: question }], { max_tokens: 64 })) {
        setAnswer((so) => so + text);
      }
    } catch (error) {
      setAnswer(`${error.code}: ${error.message}`);
    } finally {
      setBusy(false);
    }
  }

  if (error) return <p role="alert">{`${error.code}: ${error.message}`}</p>;
  if (!llm) return <p role="status">{progress ? `${progress.stage} ${progress.loaded} of ${progress.total}` : 'Starting'}</p>;
  return (
    <form onSubmit={ask}>
      <label>
        Ask <input name="question" data-testid="prompt" required />
      </label>
      <button data-testid="send" disabled={busy}>
        Send
      </button>
      <p role="status">{busy ? 'Answering' : answer ? 'Answered' : 'Ready'}</p>
      <p data-testid="answer">{answer}</p>
    </form>
  );
}
