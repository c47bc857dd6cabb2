/**
 * Imported before noVNC, which tries the browser's H.264 decoder before it does anything else: where
 * that does not answer, the page would wait for ever. The screens send no H.264.
 */
delete globalThis.VideoDecoder;
