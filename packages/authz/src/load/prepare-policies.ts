import { configHash } from '@thv/kernel/config-hash'
import type { AuthzConfig, CedarConfig } from '@thv/runconfig/policy-config'
import type { ParsedSet } from '../compile-policies.ts'
import { policiesAsJson } from '../policy-syntax.ts'
import { type AuthzDocument, checkAuthzConfig, readAuthzDocument } from './authz-document.ts'

/** The text of a document, or a document that has been read. */
export type PolicySource = { readonly text: string } | { readonly config: AuthzConfig }

export type PreparedPolicies =
  | { readonly ok: true; readonly hash: string; readonly enforced: PreparedSet; readonly candidate: PreparedSet | undefined }
  | { readonly ok: false; readonly problems: readonly string[] }

export interface PreparedSet {
  readonly mapping: Omit<CedarConfig, 'policies' | 'entities_json'>
  readonly parsed: ParsedSet
}

/** All work on policies that takes long: reading the document, and the Cedar engine. */
export function preparePolicies(source: PolicySource): PreparedPolicies {
  const document = read(source)
  if (!document.ok) return document
  const { cedar, candidate } = document.config
  const problems: string[] = []
  const enforcedSet = prepareSet(cedar, 'cedar', problems)
  const candidateSet = candidate && prepareSet(candidate, 'candidate', problems)
  if (enforcedSet === undefined || problems.length > 0) return { ok: false, problems }
  return { ok: true, hash: configHash(document.config), enforced: enforcedSet, candidate: candidateSet }
}

function read(source: PolicySource): AuthzDocument {
  return 'text' in source ? readAuthzDocument(source.text) : checkAuthzConfig(source.config)
}

function prepareSet(cedar: CedarConfig, path: string, problems: string[]): PreparedSet | undefined {
  const { policies, entities_json: entities, ...mapping } = cedar
  const parsed = policiesAsJson(policies, entities)
  if (!parsed.ok) {
    problems.push(...parsed.problems.map((problem) => `${path}.${problem.path}: ${problem.message}`))
    return undefined
  }
  return { mapping, parsed: { policies: pieces(parsed.policies), entities: pieces(JSON.parse(entities) as unknown[]) } }
}

/** A piece is parsed and compiled in about a millisecond. */
const PIECE_LENGTH = 16_384

/** JSON lists of about this length that hold the items one after the other. */
function pieces(items: readonly unknown[]): string[] {
  const lists: string[] = []
  let list: string[] = []
  let length = 0
  for (const item of items) {
    const text = JSON.stringify(item)
    list.push(text)
    length += text.length
    if (length < PIECE_LENGTH) continue
    lists.push(`[${list.join()}]`)
    list = []
    length = 0
  }
  if (list.length > 0) lists.push(`[${list.join()}]`)
  return lists
}
