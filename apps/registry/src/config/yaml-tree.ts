import { bracketDepth } from '@thv/kernel/bracket-depth'
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Range, type YAMLMap } from 'yaml'
import { keyPath, NO_PLACE, type Place, ProblemList } from './config-problem.ts'

/** The content of a file, each part with its location. Aliases are resolved; nothing else is interpreted. */
export type Tree = TreeMap | TreeList | TreeScalar

export interface TreeMap {
  readonly kind: 'map'
  readonly place: Place
  readonly entries: Map<string, TreeEntry>
}

export interface TreeEntry {
  /** Of the key. */
  readonly place: Place
  readonly value: Tree
}

export interface TreeList {
  readonly kind: 'list'
  readonly place: Place
  readonly items: readonly Tree[]
}

export interface TreeScalar {
  readonly kind: 'scalar'
  readonly place: Place
  readonly value: string | number | boolean | null
  /** Variables that the text is made of: it is read as the type that is wanted, and never shown. */
  readonly variables?: readonly string[]
}

export const MAX_CONFIG_BYTES = 1 << 20
const MAX_NODES = 50_000
const MAX_DEPTH = 32
/** Each is looked for in the whole file. */
const MAX_ALIASES = 1_000

/** The tree of a YAML text, or undefined with the reasons in `problems`. An empty file is an empty mapping. */
export function parseYamlTree(text: string, problems: ProblemList): TreeMap | undefined {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) {
    problems.add(NO_PLACE, '', `is larger than ${MAX_CONFIG_BYTES} bytes`)
    return undefined
  }
  const lines = new LineCounter()
  const document = bracketDepth(text) > MAX_BRACKETS ? undefined : parse(text, lines)
  if (document === undefined) {
    problems.add(NO_PLACE, '', 'is nested too deeply')
    return undefined
  }
  const found = new ProblemList()
  reportYamlErrors(document, lines, found)
  const tree = found.list.length === 0 ? new TreeBuilder(document, lines, found).build() : undefined
  for (const { line, column, path, message } of found.list) problems.add({ line, column }, path, message)
  return found.list.length === 0 ? tree : undefined
}

const MAX_BRACKETS = 500

function parse(text: string, lineCounter: LineCounter): Document | undefined {
  try {
    return parseDocument(text.replace(/^\uFEFF/, ''), { lineCounter, prettyErrors: false, logLevel: 'error' })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** The first in each line: what follows is mostly a consequence. The parser's own texts may quote the file, so they are not shown. */
function reportYamlErrors(document: Document, lines: LineCounter, problems: ProblemList): void {
  const tooDeep = document.errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION')
  if (tooDeep) {
    problems.add(placeAt(lines, tooDeep.pos[0]), '', 'is nested too deeply')
    return
  }
  const seen = new Set<number>()
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const place = placeAt(lines, pos[0])
    if (seen.has(place.line)) continue
    seen.add(place.line)
    problems.add(place, '', YAML_ERRORS[code] ?? 'is not YAML')
  }
}

const YAML_ERRORS: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab is no indentation in YAML: use spaces',
  DUPLICATE_KEY: 'the same key stands here twice',
  BAD_INDENT: 'is not YAML: the indentation does not fit, or a bracket is not closed',
  MISSING_CHAR: 'is not YAML: something is missing here, such as a closing quote, a colon or a comma',
  MULTIPLE_DOCS: 'the file holds more than one YAML document',
  BLOCK_AS_IMPLICIT_KEY: 'is not YAML: a mapping cannot begin here; text with ": " in it needs quotes',
  MULTILINE_IMPLICIT_KEY: 'is not YAML: a key must stand in one line and end with a colon',
  BAD_SCALAR_START: 'is not YAML: text that begins with this character needs quotes',
  BAD_ALIAS: 'is not YAML: an alias or anchor needs a name',
  BAD_DQ_ESCAPE: 'is not YAML: unknown escape in a text with double quotes',
  KEY_OVER_1024_CHARS: 'is not YAML: a key is too long',
  TAG_RESOLVE_FAILED: 'YAML tags are not used here',
  UNEXPECTED_TOKEN: 'is not YAML: something unexpected stands here',
  IMPOSSIBLE: 'is not YAML',
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset)
  return { line, column: col }
}

/** Bounded in size, so that aliases of aliases cannot make a small file large. */
class TreeBuilder {
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #problems: ProblemList
  #nodes = 0
  #aliases = 0

  constructor(document: Document, lines: LineCounter, problems: ProblemList) {
    this.#document = document
    this.#lines = lines
    this.#problems = problems
  }

  build(): TreeMap | undefined {
    const root = this.#document.contents
    const place = this.#placeOf(root, { line: 1, column: 1 })
    if (root === null || (isScalar(root) && root.value === null)) return { kind: 'map', place, entries: new Map() }
    if (isMap(root)) return this.#map(root, place, { path: '', depth: 0 })
    this.#problems.add(place, '', 'must be a mapping of keys to values')
    return undefined
  }

  #tree(node: unknown, at: Place, where: Where): Tree {
    const place = this.#placeOf(node, at)
    const empty: TreeScalar = { kind: 'scalar', place, value: null }
    if (isAlias(node)) this.#aliases++
    if (this.#nodes++ > MAX_NODES || this.#aliases > MAX_ALIASES || where.depth > MAX_DEPTH) {
      if (this.#nodes !== Infinity)
        this.#problems.add(place, '', 'the file is too large or nested too deeply, at the latest when its aliases are followed')
      this.#nodes = Infinity
      return empty
    }
    if (isAlias(node)) {
      const target = node.resolve(this.#document)
      if (target) return this.#tree(target, place, { ...where, depth: where.depth + 1 })
      this.#problems.add(place, where.path, 'the alias has no anchor before it')
      return empty
    }
    if (hasTag(node)) {
      this.#problems.add(place, where.path, 'YAML tags are not used here')
      return empty
    }
    if (isMap(node)) return this.#map(node, place, where)
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.#tree(item, place, { path: `${where.path}[${index}]`, depth: where.depth + 1 }))
      return { kind: 'list', place, items }
    }
    return { ...empty, value: scalarOf(isScalar(node) ? node.value : null) }
  }

  #map(map: YAMLMap, place: Place, { path, depth }: Where): TreeMap {
    const entries = new Map<string, TreeEntry>()
    for (const pair of map.items) {
      const at = this.#placeOf(pair.key, place)
      if (!isScalar(pair.key) || pair.key.value === null) {
        this.#problems.add(at, path, 'a key must be a text')
        continue
      }
      const key = String(pair.key.value)
      if (entries.has(key)) this.#problems.add(at, keyPath(path, key), 'the same key stands here twice')
      entries.set(key, { place: at, value: this.#tree(pair.value, at, { path: keyPath(path, key), depth: depth + 1 }) })
    }
    return { kind: 'map', place, entries }
  }

  #placeOf(node: unknown, otherwise: Place): Place {
    const range = (node as { range?: Range | null } | null)?.range
    return range && (isScalar(node) || isMap(node) || isSeq(node) || isAlias(node)) ? placeAt(this.#lines, range[0]) : otherwise
  }
}

interface Where {
  readonly path: string
  readonly depth: number
}

function hasTag(node: unknown): boolean {
  const tag = (node as Node | null)?.tag
  return tag !== undefined && !/^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/.test(tag)
}

/** Whole numbers beyond what a double can hold stay as they are: no key takes one. */
function scalarOf(value: unknown): TreeScalar['value'] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  return String(value)
}
