type Waiting<Asked, Result> = {
  asked: Asked;
  resolve: (result: Result) => void;
  reject: (reason: unknown) => void;
};

/**
 * Calls of one turn of the event loop go out as one. `call` gets what they asked, in their order,
 * and resolves with as many results; if it rejects, each of them rejects.
 * @param call for calls of the same group
 * @param max what one call may combine; it then goes out at once, and further ones make the next
 * @param atTurnEnd runs the work at the end of the event loop's turn
 */
export function combineCalls<Asked, Result>(
  call: (group: string, asked: readonly Asked[]) => Promise<readonly Result[]>,
  max: number,
  atTurnEnd: (work: () => void) => void = setImmediate,
): (group: string, asked: Asked) => Promise<Result> {
  let groups = new Map<string, Waiting<Asked, Result>[]>();

  function send(group: string, waiting: readonly Waiting<Asked, Result>[]): void {
    call(
      group,
      waiting.map(({ asked }) => asked),
    ).then(
      (results) => waiting.forEach(({ resolve }, at) => resolve(results[at] as Result)),
      (reason: unknown) => waiting.forEach(({ reject }) => reject(reason)),
    );
  }
  function sendAll(): void {
    const ended = groups;
    groups = new Map();
    for (const [group, waiting] of ended) send(group, waiting);
  }
  return (group, asked) =>
    new Promise((resolve, reject) => {
      if (groups.size === 0) atTurnEnd(sendAll);
      const waiting = groups.get(group);
      if (waiting === undefined) groups.set(group, [{ asked, resolve, reject }]);
      else if (waiting.push({ asked, resolve, reject }) >= max) {
        groups.delete(group);
        send(group, waiting);
      }
    });
}
