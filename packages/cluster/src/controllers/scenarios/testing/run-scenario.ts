import { setTimeout as sleep } from 'node:timers/promises'
import { jsonEqual } from '@thv/kernel/json'
import { type KubeClient, type KubeObject, namespaces, type ObjectKey, type ResourceType, serviceAccounts } from '@thv/kube'
import type { Json, Scenario, ScenarioSet, Snapshots, Step, Target } from '../scenario.ts'

export interface Plane {
  readonly client: KubeClient
  /** Prefix of the names of namespaces, unique to this run. */
  readonly prefix: string
}

/** How long a plane must be still before what it shows counts, and how long it may take. */
export interface Patience {
  readonly stillMs: number
  readonly limitMs: number
}

/** Does the steps. With `expected` each look waits for what is expected, then for `stillMs` more; without, until nothing changes. */
export async function runScenario(
  plane: Plane,
  { set, scenario, expected, patience }: { set: ScenarioSet; scenario: Scenario; expected?: Snapshots | undefined; patience: Patience },
): Promise<Snapshots> {
  const run = new ScenarioRun(plane, set, scenario)
  await run.begin()
  const looks: Json[] = []
  for (const step of scenario.steps) {
    if (step.do === 'look') looks.push(await settle(() => run.look(), { expected: expected?.[looks.length], patience }))
    else await run.act(step)
  }
  return looks
}

async function settle(
  look: () => Promise<Json>,
  { expected, patience }: { expected: Json | undefined; patience: Patience },
): Promise<Json> {
  const end = performance.now() + patience.limitMs
  let seen = await look()
  let since = performance.now()
  while (performance.now() < end) {
    const isWanted = expected === undefined || jsonEqual(seen, expected)
    if (isWanted && performance.now() - since >= patience.stillMs) break
    await sleep(expected === undefined ? 250 : 100)
    const next = await look()
    if (jsonEqual(next, seen)) continue
    seen = next
    since = performance.now()
  }
  return seen
}

class ScenarioRun {
  readonly #client: KubeClient
  readonly #set: ScenarioSet
  readonly #spaces: Readonly<Record<string, string>>
  readonly #uids = new Map<string, string>()

  constructor({ client, prefix }: Plane, set: ScenarioSet, scenario: Scenario) {
    this.#client = client
    this.#set = set
    const base = `${prefix}-${set.scenarios.indexOf(scenario)}`
    const needsSecond = JSON.stringify(scenario.steps).includes('{ns2}')
    this.#spaces = { '{ns}': base, ...(needsSecond ? { '{ns2}': `${base}-second` } : {}) }
  }

  async begin(): Promise<void> {
    for (const name of Object.values(this.#spaces)) {
      await this.#client.create(namespaces, { metadata: { name } })
      while ((await this.#client.tryGet(serviceAccounts, { namespace: name, name: 'default' })) === undefined) await sleep(20)
    }
  }

  async act(step: Exclude<Step, { do: 'look' }>): Promise<void> {
    switch (step.do) {
      case 'create':
        return await this.#create(this.#fill(step.object) as unknown as KubeObject)
      case 'delete': {
        const [type, key] = this.#place(step.of)
        await this.#client.delete(type, key, { propagationPolicy: step.policy, gracePeriodSeconds: step.graceSeconds })
        return
      }
      case 'patch': {
        const [type, key] = this.#place(step.of)
        await this.#client.patch(type, key, { kind: 'merge', body: this.#fill(step.body) }, { subresource: step.subresource })
        return
      }
      default: {
        const type = this.#typeOf(step.kind)
        for (const { metadata } of (await this.#client.listAll(type, { namespace: this.#spaces['{ns}'] })).items) {
          const key = { namespace: metadata.namespace ?? '', name: metadata.name }
          if (step.do === 'deleteAll') await this.#client.delete(type, key)
          else await this.#client.patch(type, key, { kind: 'merge', body: this.#fill(step.body ?? {}) })
        }
      }
    }
  }

  async look(): Promise<Json> {
    const spaces = new Set(Object.values(this.#spaces))
    const lists = await Promise.all(this.#set.types.map((type) => this.#listAll(type)))
    const uids = new Set(this.#uids.values())
    const own = lists.flat().filter(({ metadata: { namespace, name, uid } }) => spaces.has(namespace ?? name) || uids.has(uid ?? ''))
    return own
      .flatMap((object) => this.#set.view(object) ?? [])
      .map((view) => this.#normalise(view))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }

  /** A kind that is not (or no longer) served has no objects. */
  async #listAll(type: ResourceType): Promise<KubeObject[]> {
    const scopes = type.namespaced ? Object.values(this.#spaces) : [undefined]
    const lists = scopes.map(async (namespace) => {
      try {
        return (await this.#client.listAll(type, { namespace })).items
      } catch (error) {
        if ((error as { status?: number }).status === 404) return []
        throw error
      }
    })
    return (await Promise.all(lists)).flat()
  }

  async #create(object: KubeObject): Promise<void> {
    const type = this.#typeOf(object.kind ?? '')
    const metadata = type.namespaced ? { namespace: this.#spaces['{ns}'] ?? '', ...object.metadata } : object.metadata
    const created = await this.#client.create(type, { ...object, metadata })
    const label = `${type.kind}/${object.metadata.name}`
    let key = label
    for (let count = 2; this.#uids.has(key); count++) key = `${label}#${count}`
    this.#uids.set(key, created.metadata.uid ?? '')
  }

  #place({ kind, name, namespace = '{ns}' }: Target): [ResourceType, ObjectKey] {
    const type = this.#typeOf(kind)
    const filled = this.#fill(name) as string
    return [type, type.namespaced ? { namespace: this.#fill(namespace) as string, name: filled } : { name: filled }]
  }

  #typeOf(kind: string): ResourceType {
    const type = [...this.#set.types, namespaces].find((one) => one.kind === kind)
    if (type === undefined) throw new RangeError(`the scenarios have no kind ${kind}`)
    return type
  }

  #fill(value: Json): Json {
    const placed = Object.entries(this.#spaces).reduce((text, [token, name]) => text.replaceAll(token, name), JSON.stringify(value))
    return JSON.parse(placed.replaceAll(/\{uid:([^}]+)\}/g, (_, key: string) => this.#uids.get(key) ?? `no uid of ${key}`)) as Json
  }

  #normalise(value: Json): Json {
    let text = JSON.stringify(value)
    for (const [key, uid] of this.#uids) text = text.replaceAll(uid, `{uid:${key}}`)
    // The longer name first: it begins with the other.
    for (const [token, name] of Object.entries(this.#spaces).toReversed()) text = text.replaceAll(name, token)
    return JSON.parse(text) as Json
  }
}
