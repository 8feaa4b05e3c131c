// No bundler: the package's folder lies beside this page.
import { load } from './webgpu-py/client.js';

const form = document.querySelector('form');
const status = document.querySelector('[role=status]');
const answer = document.querySelector('[data-testid=answer]');

const onProgress = ({ stage, loaded, total }) => (status.textContent = `${stage} ${loaded} of ${total}`);
try {
  const llm = await load('models/model.gguf', { onProgress });
  status.textContent = 'Ready';
  form.elements[1].disabled = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    answer.textContent = '';
    const messages = [{ role: 'user', content: form.elements.question.value }];
    for await (const text of llm.chat(messages, { max_tokens: 64 })) answer.append(text);
    status.textContent = 'Answered';
  };
} catch (error) {
  status.textContent = `${error.code}: ${error.message}`;
}
