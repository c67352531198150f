import { allEntries } from './all-entries.ts'
import type { RegistryEngine } from './engine.ts'
import { createEngineCore, type EngineCore, type EngineCoreOptions } from './engine-core.ts'
import type { Publication } from './publication.ts'
import { createServedRegistries } from './served-registries.ts'

/** The whole engine in this thread: for tests and for small servers. */
export async function createEngine(options: Omit<EngineCoreOptions, 'publish'>): Promise<RegistryEngine> {
  let core: EngineCore | undefined
  const served = createServedRegistries({
    clock: options.clock,
    want: (target) => core?.want(target),
    unwant: (target) => core?.unwant(target),
  })
  core = await createEngineCore({ ...options, publish: (publication: Publication) => served.accept(publication) })
  const { admin, reload } = core
  const dispose = core[Symbol.asyncDispose]
  const { entryPage, ...calls } = admin
  return {
    registry: served.registry,
    aggregated: served.aggregated,
    get status() {
      return served.status
    },
    admin: { ...calls, entriesOf: (source) => allEntries((after) => entryPage(source, after)) },
    reload,
    resign: core.resign,
    [Symbol.asyncDispose]: dispose,
  }
}
