/*
 * The entry points of the packages: `exports` in package.json names files (`./clock`) or opens folders (`./testing/*`). Pure: works on
 * the parsed package.json and on names of files.
 */

export interface PackageEntryPoints {
  /** Name of the folder below packages/. */
  readonly name: string
  readonly exports: Readonly<Record<string, string>>
  /** Below the package, such as `./src/clock.ts`. */
  readonly files: readonly string[]
}

/** Offences of the map itself. */
export function entryPointOffences({ name, exports, files }: PackageEntryPoints): string[] {
  const at = `packages/${name}/package.json`
  return Object.entries(exports).flatMap(([entry, target]) => {
    if (entry === './*')
      return [`${at}: exports opens the whole package ("./*"): name the entry points, or open a folder such as "./testing/*"`]
    const [before = '', after = ''] = target.split('*')
    const exists = target.includes('*') ? files.some((file) => file.startsWith(before) && file.endsWith(after)) : files.includes(target)
    return exists ? [] : [`${at}: exports names ${target}, which does not exist: remove "${entry}", or name the file that took its place`]
  })
}

/** Says what is wrong with the import of a package from outside, or nothing. */
export function judgeEntryPoint(file: string, specifier: string, packages: ReadonlyMap<string, PackageEntryPoints>): string | undefined {
  const [, name = '', rest] = /^@thv\/([^/]+)(?:\/(.*))?$/.exec(specifier) ?? []
  const target = packages.get(name)
  if (target === undefined) return undefined
  const entry = rest === undefined ? '.' : `./${rest}`
  if (entry in target.exports || Object.keys(target.exports).some((key) => key.endsWith('/*') && entry.startsWith(key.slice(0, -1)))) {
    return undefined
  }
  return `${file}: ${specifier} is no entry point of its package: import one, or add "${entry}": "./src/${rest ?? 'index'}.ts" to exports in packages/${name}/package.json`
}
