/** Every script is in the folder `assets` of the service, wherever a proxy has that. */
const script: string = import.meta.url;

/**
 * The address of the service as this tab reaches it, without a slash at its end. Addresses begin
 * with all of it: a path that begins with two slashes would name another host.
 */
export const SERVICE_URL = new URL('..', script).href.replace(/\/$/, '');
