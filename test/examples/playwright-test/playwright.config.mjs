import { defineConfig } from '@playwright/test';

export default defineConfig({ testMatch: '*.spec.mjs', fullyParallel: true, workers: 2 });
