import { reject, type Rejection } from '#src/kernel/errors.ts';
import { OrganizationStoreFull, type ObjectStoreFull } from '#src/kernel/objects/object-store.ts';

/** The rejection of what finds no room in the object store: the organization's, or anybody's. */
export function storeFullRejection(error: ObjectStoreFull): Rejection {
  if (error instanceof OrganizationStoreFull)
    return reject('STORAGE_LIMIT_EXCEEDED', { max_bytes: error.maxBytes });
  const message = 'There is no room for the file.';
  return reject('UNAVAILABLE', { part: 'object-store' }, { message });
}
