/** Every script is in the folder `assets` of the service, wherever a proxy has that. */
const script: string = import.meta.url;

/** The address of the service as this tab reaches it, without a slash at its end. */
export const SERVICE_URL = new URL('..', script).href.replace(/\/$/, '');

/** The path of that address, with which its paths begin: '' at the root of its host. */
export const BASE = new URL('..', script).pathname.replace(/\/$/, '');
