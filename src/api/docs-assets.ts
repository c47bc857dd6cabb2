import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { trusted } from './html.ts';

const style = readFileSync(new URL('./docs-page.css', import.meta.url), 'utf8');
const script = readFileSync(new URL('./docs-page.js', import.meta.url), 'utf8');

/** Style and script of the pages, as elements. */
export const pageAssets = {
  style: trusted(`<style>${style}</style>`),
  script: trusted(`<script>${script}</script>`),
};
export type PageAssets = typeof pageAssets;

/** The page's own style and script by their hashes, and nothing from anywhere. */
export const PAGE_HEADERS = {
  'content-security-policy':
    `default-src 'none'; style-src '${hashOf(style)}'; script-src '${hashOf(script)}'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

const HOST = /^[\w.:[\]-]{1,255}$/;

/** The address as the caller wrote it, or as a proxy of ours says that it did. */
export function addressOf({ host, protocol }: FastifyRequest): string {
  const scheme = protocol === 'https' ? 'https' : 'http';
  return `${scheme}://${HOST.test(host) ? host : 'localhost'}`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
