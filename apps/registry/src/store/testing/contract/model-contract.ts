import { isThvError } from '@thv/kernel/errors'
import { soakRounds } from '@thv/testkit/run/run-environment'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RegistryStore, StoredEntry } from '../../registry-store.ts'
import { MANAGED, type ModelInput, type ModelRow, ModelStore, type Step } from '../../testing/model-store.ts'
import { changed, entry, file, managed, never, sync } from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

export function describeModel(use: OpenStore): void {
  describe('any history of writes', () => {
    it('leads to the rows of the model, for who reads all and for who follows', async () => {
      const { store } = await use()
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
          const model = new ModelStore()
          const follower = new Follower(store)
          for (const one of [...SETUP, ...steps]) {
            const before = await store.revision()
            expect([one, await run(store, one)]).toEqual([one, model.apply(one)])
            const after = await store.revision()
            expect(after.data - before.data).toBeOneOf([0, 1])
            expect(after.structure).toBeGreaterThanOrEqual(before.structure)
            await follower.follow()
            expect(follower.rows().map(plain).sort(byKey)).toEqual(model.rows().sort(byKey))
          }
          expect((await new Follower(store).follow()).rows().sort(byKey)).toEqual(follower.rows().sort(byKey))
          for (const source of await store.sources()) expect(source.sync.serverCount).toBe(model.served(source.config.name))
          for (const source of model.sources) await store.deleteSource(source)
        }),
        { numRuns: 30 * soakRounds() },
      )
    })
  })
}

const SETUP: readonly Step[] = [MANAGED, 's', 't'].map((source) => ({ op: 'put', source }))

/** The serving half: it reads only what is new, and drops what went with its source. */
class Follower {
  readonly #store: RegistryStore
  readonly #rows = new Map<string, StoredEntry>()
  #ids = new Map<string, number>()
  #seen = { data: 0, structure: 0 }

  constructor(store: RegistryStore) {
    this.#store = store
  }

  rows(): StoredEntry[] {
    return [...this.#rows.values()]
  }

  async follow(): Promise<this> {
    const now = await this.#store.revision()
    if (now.structure !== this.#seen.structure) {
      const ids = new Map((await this.#store.sources()).map(({ config, id }) => [config.name, id]))
      for (const [key, { source }] of this.#rows) if (ids.get(source) !== this.#ids.get(source)) this.#rows.delete(key)
      this.#ids = ids
    }
    for await (const batch of this.#store.entriesAfter(this.#seen.data, never)) {
      for (const row of batch) {
        const key = JSON.stringify([row.source, row.name, row.version])
        const old = this.#rows.get(key)
        // A row comes again only if it is another, and then its time has moved.
        if (old) {
          expect({ ...old, revision: 0, updatedAt: '' }).not.toEqual({ ...row, revision: 0, updatedAt: '' })
          expect(row.updatedAt > old.updatedAt).toBe(true)
        }
        this.#rows.set(key, row)
      }
    }
    this.#seen = now
    return this
  }
}

async function run(store: RegistryStore, one: Step): Promise<string | undefined> {
  try {
    await perform(store, one)
    return undefined
  } catch (error) {
    if (isThvError(error)) return error.code
    throw error
  }
}

async function perform(store: RegistryStore, one: Step): Promise<unknown> {
  const { source } = one
  switch (one.op) {
    case 'put':
      return store.putSource(source === MANAGED ? managed(source) : file(source))
    case 'drop':
      return store.deleteSource(source)
    case 'publish':
      return store.publish({ source, ...one.row })
    case 'replace':
      return store.replaceDocument({ source, ...one.row })
    case 'status': {
      const { op: _, ...change } = one
      return store.setStatus(change)
    }
    case 'claims':
      return store.setClaims({ source, name: one.name, claims: one.claims })
    case 'fail':
      return sync(store, source, { kind: 'failed', nextInMs: 60_000, message: 'no network' })
    case 'sync': {
      const upserts = one.upserts.map(({ name, version, claims: _, ...more }) => entry(name, version, more))
      return sync(store, source, changed(upserts, { gone: one.gone }))
    }
  }
}

const plain = ({ source, name, version, text, status, statusMessage, claims }: StoredEntry): ModelRow => ({
  source,
  name,
  version,
  text,
  status,
  statusMessage,
  claims,
})

const keyOf = ({ source, name, version }: { source: string; name: string; version: string }) => JSON.stringify([source, name, version])
const byKey = (a: { source: string; name: string; version: string }, b: typeof a) => (keyOf(a) < keyOf(b) ? -1 : 1)

const source = fc.constantFrom(MANAGED, MANAGED, 's', 't')
const name = fc.constantFrom('io.x/a', 'io.x/b')
const version = fc.constantFrom('1', '2', '10')
const status = fc.constantFrom('active', 'deprecated', 'deleted')
const statusMessage = fc.constantFrom('old', 'bad')
const claims = fc.constantFrom({ org: 'a' }, { org: ['a', 'b'] })
const input: fc.Arbitrary<ModelInput> = fc.record(
  { name, version, text: fc.constantFrom('{"n":1}', '{"n":2}', '{"n":"ü"}'), status, statusMessage, claims },
  { requiredKeys: ['name', 'version', 'text'] },
)
const key = fc.record({ name, version })
const unique = { selector: (row: { name: string; version: string }) => `${row.name} ${row.version}`, maxLength: 5 }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ op: fc.constantFrom('publish', 'replace'), source, row: input }) },
  {
    weight: 3,
    arbitrary: fc.record(
      { op: fc.constant('status' as const), source, name, version, status, statusMessage },
      { requiredKeys: ['op', 'source', 'name', 'status'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('claims' as const), source, name, claims }, { requiredKeys: ['op', 'source', 'name'] }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('put', 'drop', 'fail'), source }) },
  {
    weight: 4,
    arbitrary: fc
      .record({
        op: fc.constant('sync' as const),
        source,
        upserts: fc.uniqueArray(input, unique),
        gone: fc.uniqueArray(key, unique),
      })
      .map((one) => ({
        ...one,
        gone: one.gone.filter((key) => !one.upserts.some((row) => unique.selector(row) === unique.selector(key))),
      })),
  },
)
