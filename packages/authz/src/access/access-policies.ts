import type { Entities, Entity } from '../evaluator/entities.ts'
import type { Env } from '../evaluator/environment.ts'
import type { Decision, PolicySet } from '../evaluator/policy-set.ts'
import { CedarRecord, EntityUid, LayeredMembers, type Value } from '../evaluator/value.ts'
import { ARGUMENT_PREFIX, argumentFacts } from './arguments.ts'
import { ACTIONS, type Action, HINT_NAMES, HINTS, type Operation } from './operation.ts'
import { ANONYMOUS_SUBJECT, type ClaimMapping, mergedEntity, type Principal, principalOf, type Subject } from './principal.ts'

export interface AccessOptions extends ClaimMapping {
  /** Name of the MCP server: the parent of everything that it offers. */
  readonly server: string
}

/**
 * A set of policies that knows MCP: which entities a caller and an operation are, and their attributes. Immutable, as the set is. Facts
 * about a caller are kept as long as its `Subject` object lives, so a known token costs nothing.
 */
export class AccessPolicies {
  readonly set: PolicySet
  /** Some policy depends on the hints of a tool. */
  readonly readsHints: boolean
  readonly #options: AccessOptions
  readonly #actions: Readonly<Record<Action, Entity>>
  readonly #ofServer: ReadonlySet<string>
  readonly #principals = new WeakMap<Subject, Principal>()
  /** The scopes that permits want, each combination once. */
  readonly #wanted: readonly (readonly string[])[]
  readonly #steppedUp = new WeakMap<Subject, readonly Subject[]>()

  constructor(set: PolicySet, options: AccessOptions) {
    this.set = set
    this.readsHints = set.policies.some(({ attributes }) => HINTS.some((hint) => attributes.has(hint)))
    this.#options = options
    this.#ofServer = set.entities.ancestorsOf([new EntityUid('MCP', options.server)])
    this.#wanted = [...new Map(set.policies.map(({ scopes }) => [scopes.join(' '), scopes])).values()].filter((scopes) => scopes.length > 0)
    const actions = Object.keys(ACTIONS).map((action) => [action, this.#actionEntity(action)] as const)
    this.#actions = Object.fromEntries(actions) as Record<Action, Entity>
  }

  /** Denied unless permitted. */
  decide(subject: Subject | undefined, operation: Operation): Decision {
    return this.set.decide(this.#question(subject, operation))
  }

  /** Whether some arguments could be permitted, for an operation whose arguments are unknown. */
  mayAllow(subject: Subject | undefined, operation: Operation): boolean {
    return this.set.mayAllow(this.#question(subject, operation))
  }

  /** Whether a list shows it: some arguments could be permitted, with the scopes that the caller has or could get. */
  isShown(subject: Subject | undefined, operation: Operation): boolean {
    if (this.mayAllow(subject, operation)) return true
    if (this.#wanted.length === 0 || subject === undefined) return false
    return this.#withFurtherScopes(subject).some((one) => this.mayAllow(one, operation))
  }

  /** The scopes with which a denied operation would be permitted; undefined: none would help. */
  scopesFor(subject: Subject | undefined, operation: Operation): readonly string[] | undefined {
    if (this.#wanted.length === 0 || subject === undefined) return undefined
    const at = this.#withFurtherScopes(subject).findIndex((one) => this.decide(one, operation).allowed)
    return this.#wanted[at]
  }

  /** Allowed unless forbidden, for operations that need no permit. */
  decideForbids(subject: Subject | undefined, operation: Operation): Decision {
    return this.set.decideForbids(this.#question(subject, operation))
  }

  principal(subject: Subject = ANONYMOUS_SUBJECT): Principal {
    const known = this.#principals.get(subject)
    if (known !== undefined) return known
    const made = principalOf(subject, this.#options, this.set.entities)
    this.#principals.set(subject, made)
    return made
  }

  /** The caller as it would be with each of the wanted combinations. */
  #withFurtherScopes(subject: Subject): readonly Subject[] {
    const known = this.#steppedUp.get(subject)
    if (known !== undefined) return known
    const { scopes: held } = this.principal(subject)
    const made = this.#wanted.map((scopes): Subject => {
      const all = [...new Set([...held, ...scopes])]
      return {
        subject: subject.subject,
        claims: { ...subject.claims, scope: Array.isArray(subject.claims['scope']) ? all : all.join(' ') },
      }
    })
    this.#steppedUp.set(subject, made)
    return made
  }

  #question(subject: Subject | undefined, operation: Operation): Question {
    const { entities } = this.set
    const { entity: principal, claims, scopes } = this.principal(subject)
    const given = 'args' in operation ? operation.args : undefined
    const args = argumentFacts(given === 'unknown' ? undefined : given)
    const unknownPrefix = given === 'unknown' ? ARGUMENT_PREFIX : undefined
    const uid = new EntityUid(ACTIONS[operation.action].type, idOf(operation))
    const attributes = new LayeredMembers(resourceFacts(operation), args)
    const unknownNames = operation.action === 'call_tool' && operation.mayHaveMoreHints === true ? HINT_NAMES : undefined
    const resource = mergedEntity(uid, { attributes, ancestors: this.#ofServer, unknownPrefix, unknownNames }, entities)
    const context = new CedarRecord(args.size === 0 ? claims : new LayeredMembers(args, claims), unknownPrefix)
    return new Question({ principal, action: this.#actions[operation.action], resource, context, entities, scopes })
  }

  #actionEntity(name: string): Entity {
    const uid = new EntityUid('Action', name)
    const attributes = new Map<string, Value>([['operation', name]])
    return mergedEntity(uid, { attributes, ancestors: new Set() }, this.set.entities)
  }
}

interface QuestionParts {
  readonly principal: Entity
  readonly action: Entity
  readonly resource: Entity
  readonly context: CedarRecord
  readonly entities: Entities
  readonly scopes: ReadonlySet<string>
}

/** Its own entities come before those that the administrator wrote down, and hold these. */
class Question implements Env, Entities {
  readonly #parts: QuestionParts

  constructor(parts: QuestionParts) {
    this.#parts = parts
  }

  get principal(): EntityUid {
    return this.#parts.principal.uid
  }

  get action(): EntityUid {
    return this.#parts.action.uid
  }

  get resource(): EntityUid {
    return this.#parts.resource.uid
  }

  get context(): CedarRecord {
    return this.#parts.context
  }

  get entities(): Entities {
    return this
  }

  get scopes(): ReadonlySet<string> {
    return this.#parts.scopes
  }

  get(key: string): Entity | undefined {
    const { principal, action, resource, entities } = this.#parts
    if (key === resource.uid.key) return resource
    if (key === principal.uid.key) return principal
    return key === action.uid.key ? action : entities.get(key)
  }
}

function idOf(operation: Operation): string {
  switch (operation.action) {
    case 'call_tool':
    case 'get_prompt':
      return operation.name
    case 'read_resource':
      return operation.uri
    case 'request':
      return operation.method
    default:
      return ACTIONS[operation.action].feature
  }
}

function resourceFacts(operation: Operation): ReadonlyMap<string, Value> {
  const { operation: kind, feature } = ACTIONS[operation.action]
  const facts = new Map<string, Value>([
    ['operation', kind],
    ['feature', feature],
  ])
  switch (operation.action) {
    case 'call_tool':
      facts.set('name', operation.name).set('visible_name', operation.visibleName)
      if (operation.origin !== undefined) facts.set('backend', operation.origin.backend).set('originalName', operation.origin.originalName)
      for (const hint of HINTS) {
        const value = operation.hints?.[hint]
        if (value !== undefined) facts.set(hint, value)
      }
      break
    case 'get_prompt':
      facts.set('name', operation.name)
      break
    case 'read_resource':
      facts.set('name', operation.uri).set('uri', operation.uri)
      break
    case 'request':
      facts.set('name', operation.method)
      break
    default:
      facts.set('type', feature)
  }
  return facts
}
