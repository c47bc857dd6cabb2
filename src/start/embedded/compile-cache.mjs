/** Where Node keeps compiled code between two starts. */
import module from 'node:module';
import { join } from 'node:path';

/**
 * Keeps what this process compiles in the checkout's `.tools`: two files for each module, Node
 * version and user, which are replaced when the module has changed. Not in the shared temporary
 * folder, where another user could put code of theirs. A folder that cannot be written is no error:
 * the process compiles again. `NODE_COMPILE_CACHE` names another folder.
 * @param bundle its folder if the process runs from one: the compiled code goes with it
 */
export function enableCompileCache(root, bundle = null) {
  module.enableCompileCache?.(join(bundle ?? join(root, '.tools'), 'compile-cache'));
}
