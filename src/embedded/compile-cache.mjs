/** Where Node keeps compiled code between two starts. */
import module from 'node:module';
import { join } from 'node:path';

/**
 * Keeps what this process compiles in the checkout's `.tools`, one file for each module and Node
 * version: a module that has changed replaces its file. Not in the shared temporary folder, where
 * another user could put code of theirs. A folder that cannot be written is no error: the process
 * compiles again. `NODE_COMPILE_CACHE` names another folder.
 */
export function enableCompileCache(root) {
  module.enableCompileCache?.(join(root, '.tools', 'compile-cache'));
}
