import type { JsonObject } from './catalog-entry.ts'
import { compileGlob, type NameGlob } from './name-glob.ts'
import { quote } from './problems.ts'
import { documentTags } from './server-extensions.ts'
import { shortName } from './server-name.ts'

export interface FilterConfig {
  readonly names?: IncludeExclude
  readonly tags?: IncludeExclude
}

export interface IncludeExclude {
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
}

export type Verdict = { readonly keep: true } | { readonly keep: false; readonly reason: string }

export interface EntryFilter {
  decide(name: string, tags: ReadonlySet<string>): Verdict
  /** The same for a document: its own name, and the tags of all publishers' blocks. */
  decideDocument(document: JsonObject): Verdict
  /** Patterns that are none. As long as there is one, every entry is dropped: an unreadable exclusion must not let entries through. */
  readonly problems: readonly string[]
}

/** Exclusion first, then inclusion; names and tags must both pass. Names are globs, tried on the full name and on the part after the slash. */
export function createFilter(config: FilterConfig): EntryFilter {
  const problems: string[] = []
  const compile = (patterns: readonly string[] | undefined): readonly Named[] =>
    (patterns ?? []).flatMap((pattern) => compiled(pattern, problems))
  const excluded = compile(config.names?.exclude)
  const included = compile(config.names?.include)
  const includedTags = config.tags?.include ?? []
  const excludedTags = config.tags?.exclude ?? []

  function decide(name: string, tags: ReadonlySet<string>): Verdict {
    if (problems[0] !== undefined) return drop(problems[0])
    const short = shortName(name)
    const matches = ({ glob }: Named): boolean => glob.matches(name) || glob.matches(short)
    const exclusion = excluded.find(matches)
    if (exclusion !== undefined) return drop(`name is excluded by ${quote(exclusion.pattern)}`)
    const badTag = excludedTags.find((tag) => tags.has(tag))
    if (badTag !== undefined) return drop(`tag ${quote(badTag)} is excluded`)
    if (included.length > 0 && !included.some(matches)) return drop('name is not among those included')
    if (includedTags.length > 0 && !includedTags.some((tag) => tags.has(tag))) return drop('no tag is among those included')
    return { keep: true }
  }

  return {
    problems,
    decide,
    decideDocument(document) {
      const name = document['name']
      return typeof name === 'string' ? decide(name, documentTags(document)) : drop('has no name')
    },
  }
}

/** The same text for the same filter, however it was spelled: part of a source's hash. */
export function filterIdentity(config: FilterConfig): string {
  const sorted = (texts: readonly string[] | undefined): readonly string[] => [...new Set(texts ?? [])].sort()
  const both = (lists: IncludeExclude | undefined) => [sorted(lists?.include), sorted(lists?.exclude)]
  return JSON.stringify([both(config.names), both(config.tags)])
}

interface Named {
  readonly pattern: string
  readonly glob: NameGlob
}

function compiled(pattern: string, problems: string[]): readonly Named[] {
  const result = compileGlob(pattern)
  if (result.ok) return [{ pattern, glob: result.glob }]
  problems.push(`the pattern ${quote(pattern)} ${result.problem}`)
  return []
}

function drop(reason: string): Verdict {
  return { keep: false, reason }
}
