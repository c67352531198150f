import { createFilter, type FilterConfig } from '../filters.ts'
import { serverNameProblem } from '../server-name.ts'
import { compareCodePoints } from '../text.ts'
import { type DocumentEntry, type DocumentFormat, type DocumentGroup, type RegistryDocument, wireName } from './registry-document.ts'
import { renameEntry } from './rename-entry.ts'

/** One ConfigMap's part of a merge. */
export interface Contribution {
  /** Name of the ConfigMap. */
  readonly name: string
  /** Only for the strategy `priority`: higher first, then by name. */
  readonly priority: number
  readonly document: RegistryDocument
}

export type ConflictStrategy = 'prefix' | 'priority' | 'error'

export interface MergeRules {
  readonly format: DocumentFormat
  readonly strategy: ConflictStrategy
  /** Applied to the merged names, prefixes included. */
  readonly filter?: FilterConfig | undefined
}

export type Merge =
  | {
      readonly kind: 'merged'
      readonly document: RegistryDocument
      readonly dropped: readonly DroppedEntry[]
      /** Names that several contributions have, resolved by the strategy. */
      readonly conflicts: number
      /** The first contribution that has a name, by names on the wire. */
      readonly owners: Map<string, string>
    }
  /** Strategy `error`: names that several contributions have, sorted. */
  | { readonly kind: 'conflict'; readonly names: readonly string[] }

/** An entry whose new name cannot be used. */
export interface DroppedEntry {
  readonly contribution: string
  readonly entry: string
  readonly message: string
}

/** Equal contributions give an equal document, in whatever order they come. */
export function mergeDocuments(given: readonly Contribution[], rules: MergeRules): Merge {
  const contributions = [...given].sort(rules.strategy === 'priority' ? byPriority : byName)
  const { conflicts, owners } = conflictingNames(contributions)
  if (rules.strategy === 'error' && conflicts.size > 0) return { kind: 'conflict', names: sortedNames(contributions, conflicts) }
  const { entries, dropped } = rules.strategy === 'priority' ? firstOfEach(contributions) : prefixed(contributions, conflicts)
  const document: RegistryDocument = {
    format: rules.format,
    entries: filtered(entries, rules.filter).sort(byEntryName),
    groups: mergedGroups(contributions),
    lastUpdated: newest(contributions),
  }
  return { kind: 'merged', document, dropped, conflicts: conflicts.size, owners }
}

const byName = (a: Contribution, b: Contribution): number => compareCodePoints(a.name, b.name)
const byPriority = (a: Contribution, b: Contribution): number => b.priority - a.priority || byName(a, b)
export const byEntryName = (a: DocumentEntry, b: DocumentEntry): number =>
  compareCodePoints(a.name, b.name) || compareCodePoints(a.version ?? '', b.version ?? '')

/** Names on the wire that more than one contribution has, and the first contribution of each name. */
function conflictingNames(contributions: readonly Contribution[]): { conflicts: ReadonlySet<string>; owners: Map<string, string> } {
  const owners = new Map<string, string>()
  const conflicts = new Set<string>()
  for (const { name: contribution, document } of contributions)
    for (const entry of document.entries) {
      const name = wireName(entry.name)
      const other = owners.get(name)
      if (other === undefined) owners.set(name, contribution)
      else if (other !== contribution) conflicts.add(name)
    }
  return { conflicts, owners }
}

function sortedNames(contributions: readonly Contribution[], conflicts: ReadonlySet<string>): readonly string[] {
  const names = contributions.flatMap(({ document }) => document.entries.map(({ name }) => name))
  return [...new Set(names.filter((name) => conflicts.has(wireName(name))))].sort(compareCodePoints)
}

interface Named {
  readonly entries: DocumentEntry[]
  readonly dropped: DroppedEntry[]
}

function firstOfEach(contributions: readonly Contribution[]): Named {
  const owner = new Map<string, string>()
  const entries: DocumentEntry[] = []
  for (const { name: contribution, document } of contributions)
    for (const entry of document.entries) {
      const name = wireName(entry.name)
      if ((owner.get(name) ?? contribution) !== contribution) continue
      owner.set(name, contribution)
      entries.push(entry)
    }
  return { entries, dropped: [] }
}

/** Literal names come first: a prefixed name never takes the place of one. */
function prefixed(contributions: readonly Contribution[], conflicts: ReadonlySet<string>): Named {
  if (conflicts.size === 0) return { entries: contributions.flatMap(({ document }) => document.entries), dropped: [] }
  const entries: DocumentEntry[] = []
  const dropped: DroppedEntry[] = []
  const taken = new Map<string, string>()
  for (const { document } of contributions)
    for (const entry of document.entries) {
      const name = wireName(entry.name)
      if (conflicts.has(name)) continue
      taken.set(name, '')
      entries.push(entry)
    }
  for (const { name: contribution, document } of contributions)
    for (const entry of [...document.entries].sort(byEntryName)) {
      if (!conflicts.has(wireName(entry.name))) continue
      const name = prefixedName(contribution, entry.name)
      const origin = `${contribution}\n${entry.name}` // versions of one entry share their name
      const message = serverNameProblem(name) ?? ((taken.get(name) ?? origin) === origin ? undefined : 'another entry has that name')
      if (message !== undefined) dropped.push({ contribution, entry: entry.name, message: `would become ${short(name)}: ${message}` })
      else {
        taken.set(name, origin)
        entries.push(renameEntry(entry, name))
      }
    }
  return { entries, dropped }
}

/** A name has exactly one slash: one that has it already keeps its namespace. */
function prefixedName(contribution: string, name: string): string {
  const slash = name.indexOf('/')
  return slash === -1 ? `${contribution}/${name}` : `${name.slice(0, slash)}/${contribution}.${name.slice(slash + 1)}`
}

export function filtered(entries: DocumentEntry[], config: FilterConfig | undefined): DocumentEntry[] {
  if (config === undefined) return entries
  const filter = createFilter(config)
  return entries.filter(({ name, tags }) => filter.decide(name, new Set(tags)).keep)
}

function mergedGroups(contributions: readonly Contribution[]): readonly DocumentGroup[] {
  const count = new Map<string, number>()
  for (const { document } of contributions) for (const { name } of document.groups) count.set(name, (count.get(name) ?? 0) + 1)
  return contributions
    .flatMap(({ name: contribution, document }) =>
      document.groups.map((group) => (count.get(group.name) === 1 ? group : renameEntry(group, `${contribution}/${group.name}`))),
    )
    .sort((a, b) => compareCodePoints(a.name, b.name) || compareCodePoints(a.text, b.text))
}

/** Never the time of the merge: that would change the document each time. */
const BEGINNING = '1970-01-01T00:00:00Z'

export function newest(contributions: readonly Pick<Contribution, 'document'>[]): string {
  let found = BEGINNING
  for (const { document } of contributions) {
    const time = document.lastUpdated
    if (time === undefined) continue
    const later = Date.parse(time) - Date.parse(found)
    if (later > 0 || (later === 0 && compareCodePoints(time, found) > 0)) found = time
  }
  return found
}

function short(name: string): string {
  return JSON.stringify(name.length > 220 ? `${name.slice(0, 220)}…` : name)
}
