import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import type { KubeObject } from '@thv/kube/objects/types'
import { type Document, isNode, LineCounter, type Node, parseAllDocuments } from 'yaml'
import type { ProgramEnv } from '../program.ts'
import { KUBE_YAML } from './yaml-text.ts'

/** One object of a file, and where it stands. */
export interface ManifestObject {
  readonly file: string
  readonly line: number
  readonly object: KubeObject
  /** The line of a field such as `spec.env[0].name`, or of the nearest one above it that is there. */
  lineOf(field: string): number
}

export interface ManifestProblem {
  readonly file: string
  readonly line: number
  readonly message: string
}

export interface Manifests {
  readonly objects: readonly ManifestObject[]
  readonly problems: readonly ManifestProblem[]
}

const MAX_BYTES = 16 << 20

/**
 * All objects of files, folders (`.yaml`, `.yml` and `.json`, by name) and `-`, the standard input. A document that is no object is
 * a problem of that document only; a file that cannot be read throws.
 */
export async function readManifests(sources: readonly string[], env: Pick<ProgramEnv, 'cwd' | 'readInput'>): Promise<Manifests> {
  const objects: ManifestObject[] = []
  const problems: ManifestProblem[] = []
  for (const source of sources) {
    for (const { file, text } of source === '-' ? [await standardInput(env)] : filesOf(source, env.cwd)) {
      const found = parseManifests(file, text)
      objects.push(...found.objects)
      problems.push(...found.problems)
    }
  }
  return { objects, problems }
}

export function parseManifests(file: string, text: string): Manifests {
  const lineCounter = new LineCounter()
  const objects: ManifestObject[] = []
  const problems: ManifestProblem[] = []
  const parsed = parseAllDocuments(text, { ...KUBE_YAML, lineCounter, prettyErrors: false })
  const lineAt = (offset: number | undefined) => (offset === undefined ? 1 : lineCounter.linePos(offset).line)
  for (const document of Array.isArray(parsed) ? parsed : []) {
    const line = lineAt(document.contents?.range?.[0])
    const [error] = document.errors
    if (error) {
      problems.push({ file, line: lineAt(error.pos[0]), message: `not YAML: ${error.message}` })
      continue
    }
    const value = contentOf(document)
    if (value === null || value === undefined) continue // only comments
    for (const { object, path } of objectsOf(value)) {
      const at = (field: readonly (string | number)[]) => lineAt(nodeAt(document, [...path, ...field])?.range?.[0])
      const problem = problemOf(object)
      if (problem === undefined) objects.push({ file, line: at([]), object: object as KubeObject, lineOf: (field) => at(pathOf(field)) })
      else problems.push({ file, line: path.length === 0 ? line : at([]), message: problem })
    }
  }
  return { objects, problems }
}

function contentOf(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    return `its aliases cannot be resolved: ${(error as Error).message}`
  }
}

/** A List is its items. */
function objectsOf(value: unknown): { object: unknown; path: (string | number)[] }[] {
  const { kind, items } = (typeof value === 'object' ? value : {}) as { kind?: unknown; items?: unknown }
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [{ object: value, path: [] }]
  return items.map((object: unknown, index) => ({ object, path: ['items', index] }))
}

function problemOf(value: unknown): string | undefined {
  if (typeof value === 'string' && value.startsWith('its aliases')) return value
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not a Kubernetes object: a mapping is expected'
  const { apiVersion, kind, metadata } = value as Record<string, unknown>
  if (typeof apiVersion !== 'string' || apiVersion === '') return 'not a Kubernetes object: apiVersion is missing'
  if (typeof kind !== 'string' || kind === '') return 'not a Kubernetes object: kind is missing'
  const { name } = (typeof metadata === 'object' && metadata !== null ? metadata : {}) as Record<string, unknown>
  if (typeof name === 'string' && name !== '') return undefined
  // YAML reads y, no, on and 12 as something else than a text.
  const isOther = typeof name === 'boolean' || typeof name === 'number'
  return isOther ? `${kind}: metadata.name is read as the ${typeof name} ${name}: put it in quotes` : `${kind}: metadata.name is missing`
}

/** `spec.env[0].name` and `spec.limits[cpu]` as steps. */
function pathOf(field: string): (string | number)[] {
  return [...field.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map(([word, inBrackets]) => {
    const step = inBrackets ?? word
    return inBrackets !== undefined && /^\d+$/.test(step) ? Number(step) : step
  })
}

function nodeAt(document: Document.Parsed, path: readonly (string | number)[]): Node | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) return node
  }
  return document.contents ?? undefined
}

async function standardInput(env: Pick<ProgramEnv, 'readInput'>): Promise<{ file: string; text: string }> {
  if (env.readInput === undefined) throw new ThvError('usage', 'standard input is not available')
  return { file: 'standard input', text: await env.readInput() }
}

function filesOf(source: string, cwd: string): { file: string; text: string }[] {
  if (/^https?:\/\//.test(source)) throw new ThvError('usage', `${source}: fetch it first, and look at it: only files are applied`)
  const path = resolve(cwd, source)
  try {
    if (!statSync(path).isDirectory()) return [{ file: source, text: textOf(path, source) }]
    const names = readdirSync(path).filter((name) => /\.(ya?ml|json)$/.test(name))
    if (names.length === 0) throw new ThvError('usage', `${source} contains no .yaml, .yml or .json file`)
    return names.sort().map((name) => ({ file: join(source, name), text: textOf(join(path, name), join(source, name)) }))
  } catch (error) {
    if (error instanceof ThvError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new ThvError(
      'usage',
      code === 'ENOENT' ? `file or folder not found: ${source}` : `${source} cannot be read (${code ?? 'unknown'})`,
    )
  }
}

function textOf(path: string, shown: string): string {
  if (statSync(path).size > MAX_BYTES) throw new ThvError('usage', `${shown} is larger than ${MAX_BYTES} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError) throw new ThvError('usage', `${shown} is not text in UTF-8`)
    throw error
  }
}
