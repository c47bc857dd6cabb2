import { waitingCount } from '../handoffs/inbox.ts';
import { PAGES } from '../../../roles/api/dashboard/pages.ts';
import { openPalette } from './command-palette.tsx';
import { caller, menuPages } from '../api/caller.ts';
import { signOut } from '../api/credential.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { Icon } from './icons.tsx';
import { follow, place } from './router.ts';
import { nextTheme, theme } from './theme.ts';

export function TopBar() {
  const current = place.value?.name;
  return (
    <header class="bar">
      <a class="brand" href={`${SERVICE_URL}/`} onClick={follow}>
        <span class="mark" aria-hidden="true" />
        Browser sessions
        <span class="muted">{caller.value?.name}</span>
      </a>
      <nav aria-label="Pages">
        {menuPages().map((name) => (
          <a
            key={name}
            href={SERVICE_URL + PAGES[name].path}
            onClick={follow}
            aria-current={name === current ? 'page' : undefined}
          >
            {PAGES[name].title}
            {name === 'handoffs' && waitingCount.value > 0 && (
              <span class="count">
                {waitingCount.value}
                <span class="hidden"> waiting</span>
              </span>
            )}
          </a>
        ))}
        <a href={`${SERVICE_URL}/docs`}>API</a>
      </nav>
      <div class="tools">
        <button type="button" class="quiet" aria-label="Commands Ctrl K" onClick={openPalette}>
          <Icon name="search" />
          <span class="word">Commands</span> <kbd>Ctrl K</kbd>
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={nextTheme}
        >
          <Icon name="theme" />
        </button>
        <button
          type="button"
          class="quiet"
          aria-label="Sign out"
          title="Sign out"
          onClick={() => signOut(null)}
        >
          <Icon name="leave" />
        </button>
      </div>
    </header>
  );
}
