import { defineConfig } from 'vite';

/**
 * One script for the first page and one for each other, each named by its hash; nothing is inlined
 * into the page. Without the group the first page has fifteen small scripts, six of which a browser
 * loads at a time. Addresses are relative: a proxy may have the service below a path.
 */
export default defineConfig({
  base: './',
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
