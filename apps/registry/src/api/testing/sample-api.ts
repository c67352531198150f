import { afterAll } from 'vitest'
import { type ApiServer, type ApiServerOptions, startApi } from './api-server.ts'
import { createSampleEngine, type SampleEngine } from './sample-engine.ts'

/** For all tests of a file. */
export async function sampleApi(options: Omit<ApiServerOptions, 'engine'> = {}): Promise<{ engine: SampleEngine; api: ApiServer }> {
  const engine = await createSampleEngine()
  const api = await startApi({ engine, ...options })
  afterAll(async () => {
    await api[Symbol.asyncDispose]()
    await engine[Symbol.asyncDispose]()
  })
  return { engine, api }
}
