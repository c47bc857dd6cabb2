import { defineConfig } from 'vite';

/**
 * One script for the first page and one for each other, each named by its hash; nothing is inlined
 * into the page. Without the group the first page has fifteen small scripts, six of which a browser
 * loads at a time.
 */
export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } },
    },
  },
});
