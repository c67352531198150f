import { isObject } from '@thv/kernel/json'
import type { Entity, EntityStore } from '../evaluator/entities.ts'
import { CedarSet, EntityUid, LayeredMembers, type Members, type Value } from '../evaluator/value.ts'
import { factOf } from './json-facts.ts'

/** The caller, as far as policies see it. */
export interface Subject {
  readonly subject: string
  readonly claims: { readonly [name: string]: unknown }
}

/** Which claims say what. */
export interface ClaimMapping {
  readonly groupClaimName?: string | undefined
  readonly roleClaimName?: string | undefined
  readonly groupEntityType?: string | undefined
  /** Claims that are also given as the set of their words. */
  readonly multiValuedClaims?: readonly string[] | undefined
}

export interface Principal {
  readonly uid: EntityUid
  readonly entity: Entity
  /** `claim_*` and `claimset_*`. */
  readonly claims: ReadonlyMap<string, Value>
  /** Scopes that the token carries. */
  readonly scopes: ReadonlySet<string>
}

const PRINCIPAL_TYPE = 'Client'
export const ANONYMOUS_SUBJECT: Subject = { subject: 'anonymous', claims: {} }
export const DEFAULT_GROUP_TYPE = 'THVGroup'
const GROUP_CLAIMS = ['groups', 'roles', 'cognito:groups']

export function principalOf({ subject, claims }: Subject, mapping: ClaimMapping, store: EntityStore): Principal {
  const uid = new EntityUid(PRINCIPAL_TYPE, subject)
  const scopes = new Set([...words(claims['scope']), ...words(claims['scp'])])
  const facts = claimFacts(claims, mapping)
  if (claims['scope'] !== undefined || claims['scp'] !== undefined) facts.set('claimset_scope', new CedarSet(scopes))
  const groupType = mapping.groupEntityType || DEFAULT_GROUP_TYPE
  const parents = groupsOf(claims, mapping).map((group) => new EntityUid(groupType, group))
  return { uid, entity: mergedEntity(uid, { attributes: facts, ancestors: store.ancestorsOf(parents) }, store), claims: facts, scopes }
}

function claimFacts(claims: Subject['claims'], { multiValuedClaims = [] }: ClaimMapping): Map<string, Value> {
  const facts = new Map<string, Value>()
  for (const [name, claim] of Object.entries(claims)) {
    const isMultiValued = multiValuedClaims.includes(name)
    const value = isMultiValued && Array.isArray(claim) ? words(claim).join(' ') : factOf(claim)
    if (value !== undefined) facts.set(`claim_${name}`, value)
    if (isMultiValued) facts.set(`claimset_${name}`, new CedarSet(words(claim)))
  }
  return facts
}

/** The words of a text, or the texts of a list. */
function words(claim: unknown): string[] {
  if (typeof claim === 'string') return claim.split(/\s+/).filter((word) => word !== '')
  return Array.isArray(claim) ? claim.filter((item) => typeof item === 'string') : []
}

/** Only lists count: a text that happens to be a group's name is no membership. */
export function groupsOf(claims: Subject['claims'], { groupClaimName, roleClaimName }: ClaimMapping): string[] {
  const named = groupClaimName
    ? claimAt(claims, groupClaimName)
    : GROUP_CLAIMS.map((name) => claims[name]).find((claim) => claim !== undefined)
  const roles = roleClaimName ? claimAt(claims, roleClaimName) : undefined
  return [...new Set([named, roles].flatMap((claim) => (Array.isArray(claim) ? words(claim) : [])))]
}

/** By its exact name, else by a path: `realm_access.roles`. */
function claimAt(claims: Subject['claims'], name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name.split('.').reduce<unknown>((at, part) => (isObject(at) && Object.hasOwn(at, part) ? at[part] : undefined), claims)
}

const NO_TAGS: ReadonlyMap<string, Value> = new Map()

interface Known {
  readonly attributes: Members
  readonly ancestors: ReadonlySet<string>
  readonly unknownPrefix?: string | undefined
  readonly unknownNames?: ReadonlySet<string> | undefined
}

/** An entity of the request, with what the administrator's entities say about it. The request wins where both name an attribute. */
export function mergedEntity(uid: EntityUid, known: Known, store: EntityStore): Entity {
  const { attributes, ancestors, unknownPrefix, unknownNames } = known
  const written = store.get(uid.key)
  if (written === undefined) return { uid, attributes, tags: NO_TAGS, ancestors, unknownPrefix, unknownNames }
  const all = written.ancestors.size === 0 ? ancestors : new Set([...ancestors, ...written.ancestors])
  const { tags } = written
  return { uid, attributes: new LayeredMembers(attributes, written.attributes), tags, ancestors: all, unknownPrefix, unknownNames }
}
