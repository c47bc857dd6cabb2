import { render } from 'preact';
import { App } from './app.tsx';
import { credential, takeKeyFromAddress } from './api/credential.ts';
import { sessionList } from './sessions/session-list.ts';
import { place } from './shell/router.ts';
import { applyTheme } from './shell/theme.ts';

takeKeyFromAddress();
applyTheme();
// The list is on its way while the page is built.
if (credential.value !== null && place.value?.name === 'sessions') sessionList.start();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
