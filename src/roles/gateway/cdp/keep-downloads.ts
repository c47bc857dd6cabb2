import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';

/** What each command that says where downloads go has in its text. */
export const MARK = 'DownloadBehavior';

type Command = { method?: unknown; params?: Record<string, unknown> };

/** Longer messages are not rewritten: `READ_BYTES_MAX` of the message rewriter. */
const COMMAND_BYTES_MAX = 16 * 1024;
/** An envelope has a message, which is a command. Clients have no envelopes in envelopes. */
const DEPTH_MAX = 2;

/**
 * The CDP command in place of one that says where the browser keeps downloads: in the session's
 * folder, wherever the client wanted them, because a folder of the client's machine does not exist
 * where the browser runs, and Chromium cancels the download. A client that wants none (`deny`)
 * gets none. Null: the message stays as it is.
 */
export function keepDownloads(message: string, depth = DEPTH_MAX): string | null {
  const command = parse(message);
  const params = command?.params;
  if (params === undefined || params === null || depth === 0) return null;
  switch (command?.method) {
    case 'Browser.setDownloadBehavior':
    case 'Page.setDownloadBehavior': {
      if (!['allow', 'allowAndName', 'default'].includes(String(params['behavior']))) return null;
      const kept = { ...params, behavior: 'allowAndName', downloadPath: DOWNLOADS_FOLDER };
      // The command of a page knows no `allowAndName`; pages have that of the browser, too.
      return JSON.stringify({ ...command, method: 'Browser.setDownloadBehavior', params: kept });
    }
    // How old clients address a page.
    case 'Target.sendMessageToTarget': {
      const inner = params['message'];
      const kept = typeof inner === 'string' ? keepDownloads(inner, depth - 1) : null;
      return kept && JSON.stringify({ ...command, params: { ...params, message: kept } });
    }
    default:
      return null;
  }
}

function parse(message: string): Command | null {
  try {
    return parseForeignJson(message, { bytesMax: COMMAND_BYTES_MAX }) as Command | null;
  } catch {
    return null; // the browser says so
  }
}
