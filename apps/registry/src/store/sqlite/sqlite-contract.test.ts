import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { describeStoreContract, type OpenStore } from '../testing/contract/store-contract.ts'
import { openSqliteStore } from './sqlite-store.ts'

describeStoreContract('memory', async () => ({ store: await openSqliteStore({ clock: systemClock }) }))

const openFile: OpenStore = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'thv-registry-'))
  const open = () => openSqliteStore({ path: join(folder, 'registry.sqlite'), clock: systemClock })
  const store = await open()
  return {
    store,
    reopen: async () => {
      await store[Symbol.asyncDispose]()
      return open()
    },
    dispose: () => rm(folder, { recursive: true, force: true }),
  }
}

describeStoreContract('file', openFile, { reopens: true })
