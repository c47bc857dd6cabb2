/**
 * Packages of features that few processes use: they are `optionalDependencies`, are imported when
 * their feature is named, and may be left out of an installation (`--omit=optional`).
 */
import packageJson from '../../package.json' with { type: 'json' };

export type OptionalPackage = keyof typeof packageJson.optionalDependencies;

/** The package of a feature that is configured or called is not installed. */
export class PackageMissing extends Error {
  override readonly name = 'PackageMissing';
}

/**
 * Imports what needs optional packages.
 * @param feature the variable or the command that names it
 * @throws PackageMissing with the command that installs them
 */
export async function withPackages<Module>(
  names: readonly OptionalPackage[],
  feature: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const missing = names.find((name) => name === missingPackage(error));
    if (missing === undefined) throw error;
    const wanted = names.map((name) => `${name}@${packageJson.optionalDependencies[name]}`);
    throw new PackageMissing(
      `${feature} needs the npm package ${missing}, which is not installed. Install it by: ` +
        `npm install --no-save ${wanted.join(' ')}`,
      { cause: error },
    );
  }
}

/** The package that an import did not find; null: it failed for another reason. */
function missingPackage(error: unknown): string | null {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== 'ERR_MODULE_NOT_FOUND') return null;
  return /^Cannot find package '([^']+)'/.exec(message)?.[1] ?? null;
}
