import type { ApiServer } from '@thv/testkit/cluster/api-server'
import { startMeasured } from '../proxy/measured-process.ts'
import { LABEL } from './data-maps.ts'

/** Time and memory of a client without any idea of registries, for the same data. */
export interface BareMerge {
  readonly seconds: number
  readonly rssMb: number
}

export async function bareMerge(server: ApiServer, { from, into }: { from: string; into: string }): Promise<BareMerge> {
  await using bare = await startMeasured({
    script: 'bench/mcpregistry/bare.ts',
    env: {
      ...{ THV_SERVER: server.url, THV_TOKEN: server.adminToken, THV_CA: server.caPem },
      ...{ THV_FROM: from, THV_INTO: into, THV_LABEL: `${LABEL}=true` },
    },
  })
  const [, ms = ''] = await bare.line(/^merged \d+ in (\S+) ms$/)
  const { rssKb } = await bare.usage({ gc: true })
  return { seconds: Number(ms) / 1000, rssMb: rssKb / 1024 }
}
