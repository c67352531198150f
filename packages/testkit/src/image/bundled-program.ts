import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleParts, ensureBundle, noticesOf } from '../../../../scripts/bundle.mjs'
import { noticesText } from '../../../../scripts/notices.mjs'
import { file, imageNode, text } from './node-runtime.ts'
import type { TarEntry } from './tar.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const appFolder = 'app'
/** Licences and notices in the image. */
export const DOC_FOLDER = 'usr/share/doc/toolhive-ts'
/** Packages that a bundle leaves outside because they read files from beside themselves, with the folders that are needed. */
const outside: Readonly<Record<string, readonly string[]>> = { '@cedar-policy/cedar-wasm': ['package.json', 'nodejs'] }

export interface BundledProgram {
  /** Its command in the image. */
  readonly name: string
  /** Its main module, below the repository. */
  readonly entry: string
}

/** The bundles of the programs, each as a command on PATH, and the packages that they leave outside. */
export async function bundledProgramFiles(programs: readonly BundledProgram[]): Promise<TarEntry[]> {
  const entries = new Map<string, TarEntry>()
  for (const { name, entry } of programs) {
    const bundleFile = await ensureBundle(entry)
    const bundle = readFileSync(bundleFile, 'utf8')
    const path = `${appFolder}/${name}.mjs`
    // Without a shell in the image the system itself starts Node for it.
    add(entries, text(path, `#!${imageNode}\n${bundle.replace(/^#!.*\n/, '')}`, 0o755))
    add(entries, text(`${path}.map`, mapOf(bundleFile, { hasFirstLine: bundle.startsWith('#!') })))
    const parts = bundleParts(bundleFile) ?? []
    for (const part of parts) {
      add(entries, file(`${appFolder}/${basename(part)}`, part))
      if (existsSync(`${part}.map`)) add(entries, file(`${appFolder}/${basename(part)}.map`, `${part}.map`))
    }
    add(entries, text(`${DOC_FOLDER}/NOTICES-${name}.txt`, readFileSync(noticesOf(bundleFile), 'utf8')))
    add(entries, { path: `usr/local/bin/${name}`, content: { kind: 'link', target: `/${path}` } })
    for (const [packageName, folders] of Object.entries(outside))
      if ([bundleFile, ...parts].some((path) => readFileSync(path, 'utf8').includes(packageName))) {
        for (const found of packageFiles(packageName, folders)) add(entries, found)
        const notices = noticesText([join(root, 'node_modules', packageName)], { root })
        add(entries, text(`${DOC_FOLDER}/NOTICES-${packageName.replace('/', '-')}.txt`, notices))
      }
  }
  return [...entries.values()]
}

/** Of the image, where the bundle has one more line if it had no line for the system before. */
function mapOf(bundleFile: string, { hasFirstLine }: { hasFirstLine: boolean }): string {
  const map = JSON.parse(readFileSync(`${bundleFile}.map`, 'utf8')) as { mappings: string }
  return JSON.stringify({ ...map, mappings: hasFirstLine ? map.mappings : `;${map.mappings}` })
}

function add(entries: Map<string, TarEntry>, entry: TarEntry): void {
  entries.set(entry.path, entry)
}

function packageFiles(name: string, parts: readonly string[]): TarEntry[] {
  const folder = join(root, 'node_modules', name)
  if (!existsSync(folder)) throw new Error(`a program needs the package ${name}, which is not installed`)
  return parts
    .flatMap((part) => filesBelow(join(folder, part)))
    .filter((path) => !/\.d\.ts$|README/.test(path))
    .map((path) => file([appFolder, 'node_modules', ...name.split('/'), ...relative(folder, path).split(sep)].join('/'), path))
}

export function filesBelow(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
