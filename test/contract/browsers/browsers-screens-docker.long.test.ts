import { describe } from 'vitest';
import { dockerAdapter } from '#test/support/browsers/browsers-adapters.ts';
import { browsersScreens } from '#test/support/browsers/browsers-screens-suite.ts';
import { hasDocker } from '#test/support/servers/docker-engine.ts';

describe.runIf(hasDocker())('screens of browsers (docker)', () => browsersScreens(dockerAdapter));
