import { afterEach, describe } from 'vitest'
import type { RegistryStore } from '../../registry-store.ts'
import { describeConfigured } from './configured-contract.ts'
import { describeEntries, describeReopening, describeSharing } from './entries-contract.ts'
import { describeLeases } from './lease-contract.ts'
import { describeManaged } from './managed-contract.ts'
import { describeModel } from './model-contract.ts'
import { describeSync } from './sync-contract.ts'

export interface OpenedStore {
  readonly store: RegistryStore
  /** Closes the store and opens its data again. Left out by what keeps nothing. */
  reopen?(): Promise<RegistryStore>
  /** Another process on the same data, or what is as good as one. Left out by what only one process may open. */
  second?(): Promise<RegistryStore>
  /** Whatever else has to be cleared away. Stores are closed before. */
  dispose?(): Promise<void>
}

/** A store without anything in it, whenever it is called. */
export type OpenStore = () => Promise<OpenedStore>

/** Additional results of `open`, so that nothing has to be skipped. */
export interface StoreTraits {
  readonly reopens?: boolean
  readonly shared?: boolean
}

/** The contract of registry-store.ts, for every adapter. */
export function describeStoreContract(name: string, open: OpenStore, traits: StoreTraits = {}): void {
  describe(`${name} store`, () => {
    const opened: OpenedStore[] = []
    const stores: RegistryStore[] = []
    const tracked = <T extends RegistryStore>(store: T): T => {
      stores.push(store)
      return store
    }
    const use: OpenStore = async () => {
      const one = await open()
      opened.push(one)
      tracked(one.store)
      const { reopen, second } = one
      return {
        store: one.store,
        ...(reopen && { reopen: async () => tracked(await reopen.call(one)) }),
        ...(second && { second: async () => tracked(await second.call(one)) }),
      }
    }
    afterEach(async () => {
      for (const store of stores.splice(0).reverse()) await store[Symbol.asyncDispose]()
      for (const one of opened.splice(0)) await one.dispose?.()
    })

    describeConfigured(use)
    describeManaged(use)
    describeEntries(use)
    if (traits.reopens) describeReopening(use)
    if (traits.shared) describeSharing(use)
    describeLeases(use)
    describeSync(use)
    describeModel(use)
  })
}
