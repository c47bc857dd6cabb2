import { render } from 'preact';
import { App } from './app.tsx';
import { takeKeyFromAddress } from './shell/credential.ts';
import { applyTheme } from './shell/theme.ts';

takeKeyFromAddress();
applyTheme();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
