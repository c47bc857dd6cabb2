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
// A relative one is looked for anew at each address that the tab goes to.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
icon?.setAttribute('href', icon.href);
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
