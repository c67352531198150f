import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { entryPointOffences, judgeEntryPoint, type PackageEntryPoints } from './entry-points.ts'
import { folderOffences, type SourceFile } from './folder-rules.ts'

/*
 * Packages lie in layers: apps → L2 → L1 → L0. Apps are not imported, and a package is imported through its entry points. TypeScript 7
 * has no compiler API, so the import lines are read as text.
 */

const LAYER: Readonly<Record<string, number>> = {
  kernel: 0,
  kube: 1,
  mcp: 1,
  http: 1,
  telemetry: 1,
  store: 1,
  programs: 1,
  'kube-schema': 1,
  resources: 2,
  runconfig: 2,
  vmcpconfig: 2,
  auth: 2,
  authz: 2,
  authserver: 2,
  middleware: 2,
  gateway: 2,
  workflow: 2,
  catalog: 2,
  cluster: 2,
}
/** Edges inside one layer that are meant. */
const ALLOWED_SIDEWAYS = new Set(['mcp → http'])
/** May import everything and is imported by tests only. */
const TESTKIT = 'testkit'

export interface ArchitectureReport {
  filesRead: number
  offences: string[]
}

export function checkArchitecture(root: string): ArchitectureReport {
  const files = sourceFiles(root).map(
    (file): SourceFile => ({ path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }),
  )
  const packages = entryPoints(root, files)
  const offences = files.flatMap(({ path, text }) =>
    importsOf(text).flatMap((specifier) => [judge(path, specifier) ?? [], judgeEntryPoint(path, specifier, packages) ?? []].flat()),
  )
  const ofMaps = [...packages.values()].flatMap(entryPointOffences)
  return { filesRead: files.length, offences: [...offences, ...ofMaps, ...folderOffences(files)] }
}

function entryPoints(root: string, files: readonly SourceFile[]): Map<string, PackageEntryPoints> {
  return new Map(
    readdirSync(join(root, 'packages')).map((name) => {
      const folder = `packages/${name}/`
      const { exports = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Partial<PackageEntryPoints>
      const own = files.filter(({ path }) => path.startsWith(folder)).map(({ path }) => `./${path.slice(folder.length)}`)
      return [name, { name, exports, files: own }]
    }),
  )
}

/** Says what is wrong with one import, or nothing. */
export function judge(file: string, specifier: string): string | undefined {
  const [area, from] = file.split('/')
  if (!from || (area !== 'apps' && area !== 'packages')) return undefined
  const isTest = /\.test\.ts$|\/testing\//.test(file)
  const to = specifier.startsWith('@thv/') ? specifier.split('/')[1] : undefined
  const edge = (target: string) => `${file}: ${from} → ${target} (${specifier})`

  if (specifier.startsWith('.') && climbsOut(file, specifier))
    return isTest || from === TESTKIT ? undefined : `${edge('outside of its package')}`
  if (!to || to === from) return undefined
  if (isTest || from === TESTKIT) return undefined
  if (to === TESTKIT) return `${edge(TESTKIT)}: only tests may`
  if (!(to in LAYER)) return `${edge(to)}: apps are not imported, and a new package needs its layer in scripts/architecture.ts`
  if (area === 'apps') return undefined
  const own = LAYER[from]
  const other = LAYER[to] ?? 0
  if (own === undefined) return `${file}: package ${from} has no layer in scripts/architecture.ts`
  if (own > other || (own === 2 && other === 2) || ALLOWED_SIDEWAYS.has(`${from} → ${to}`)) return undefined
  return `${edge(to)}: a package imports from the layers below it`
}

function climbsOut(file: string, specifier: string): boolean {
  const depthInPackage = file.split('/').length - 3
  const climbs = specifier.split('/').filter((part) => part === '..').length
  return climbs > depthInPackage
}

export function importsOf(text: string): string[] {
  const found: string[] = []
  for (const match of text.matchAll(/(?:^|[\s;])(?:import|export)\s(?:[^'";]*?\sfrom\s)?\s*['"]([^'"]+)['"]/g))
    if (match[1]) found.push(match[1])
  for (const match of text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) if (match[1]) found.push(match[1])
  return found
}

function sourceFiles(root: string): string[] {
  return ['packages', 'apps'].flatMap((area) =>
    readdirSync(join(root, area)).flatMap((name) => {
      const entries = readdirSync(join(root, area, name, 'src'), { recursive: true, withFileTypes: true })
      return entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts')).map((entry) => join(entry.parentPath, entry.name))
    }),
  )
}
