import type { ComponentChildren } from 'preact';
import { SERVICE_URL } from '../api/service-url.ts';
import { follow } from './router.ts';

type LinkProps = { to: string; class?: string; children: ComponentChildren };

/** A link to a page of the dashboard. */
export function Link({ to, class: name, children }: LinkProps) {
  return (
    <a href={SERVICE_URL + to} class={name ?? ''} onClick={follow}>
      {children}
    </a>
  );
}
