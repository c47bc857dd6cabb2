/**
 * Where a browser keeps what it downloads, as `downloadPath` of CDP: relative to the working folder
 * of its process, so that it is the same for every browser, whatever runs it. Each download has the
 * name of its guid there (`allowAndName`), so that none replaces another. The provisioner gives it
 * its own name once it is complete.
 */
export const DOWNLOADS_FOLDER = 'downloads';
