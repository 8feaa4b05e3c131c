import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  // Pre-bundled, the package would look for its worker in the wrong folder.
  optimizeDeps: { exclude: ['webgpu-py'] },
});
