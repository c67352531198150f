import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import type { ApiServer } from '@thv/testkit/cluster/api-server'
import { startMeasured } from '../proxy/measured-process.ts'
import { LABEL } from './data-maps.ts'

/** A client without any idea of registries, for the same data. */
export interface BareClient extends AsyncDisposable {
  /** Of the first merge. */
  readonly seconds: number
  readonly rssMb: number
  /** Reads a changed ConfigMap and writes what is in it. Gives the processor time of that. */
  change(map: string): Promise<{ cpuUs: number; writes: number }>
}

export async function startBareClient(server: ApiServer, { from, into }: { from: string; into: string }): Promise<BareClient> {
  const bare = await startMeasured({
    script: 'bench/mcpregistry/bare.ts',
    stdin: true,
    env: {
      ...MEMORY_SETTINGS,
      ...{ THV_SERVER: server.url, THV_TOKEN: server.adminToken, THV_CA: server.caPem },
      ...{ THV_FROM: from, THV_INTO: into, THV_LABEL: `${LABEL}=true` },
    },
  })
  const [, ms = ''] = await bare.line(/^merged \d+ in (\S+) ms$/)
  const { rssKb } = await bare.usage({ gc: true })
  return {
    seconds: Number(ms) / 1000,
    rssMb: rssKb / 1024,
    async change(map) {
      bare.send(map)
      const [, writes = '', us = ''] = await bare.line(new RegExp(`^changed ${map}: (\\d+) writes, (\\d+) us$`))
      return { cpuUs: Number(us), writes: Number(writes) }
    },
    [Symbol.asyncDispose]: () => bare[Symbol.asyncDispose](),
  }
}
