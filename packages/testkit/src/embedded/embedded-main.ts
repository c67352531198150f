import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { startApiServer } from '@thv/cluster/apiserver/api-server'
import { serviceAccountController } from '@thv/cluster/controllers/service-accounts/service-account-controller'
import { startControllers } from '@thv/cluster/platform/all-controllers'
import { systemClock } from '@thv/kernel/clock'
import { bearerToken, createEventRecorder, createKubeClient, createSharedCaches } from '@thv/kube'

/*
 * The embedded control plane as a process of its own, for tests: API server, and controllers unless told
 * otherwise. What a client needs
 * is written to READY-FILE once it answers. SIGUSR2 forgets all history, as etcd's compaction does, and READY-FILE.compactions then changes.
 *   node embedded-main.ts FOLDER PORT READY-FILE [--no-controllers]
 */

const [folder = '', port = '0', readyFile = '', ...flags] = process.argv.slice(2)
const stop = new AbortController()
const onError = (error: unknown) => {
  if (!stop.signal.aborted) console.error(new Date().toISOString(), error)
}

const server = await startApiServer({ folder, port: Number(port), onError })
process.on('SIGUSR2', () => {
  server.store.compact()
  writeFileSync(`${readyFile}.compactions`, randomUUID())
})
const connection = { server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) }
const client = createKubeClient(connection, { userAgent: 'kube-controller-manager/thv' })
const caches = createSharedCaches(client, { onError })
const events = createEventRecorder({
  client,
  controller: 'toolhive.stacklok.dev/controllers',
  instance: 'embedded',
  signal: stop.signal,
  onError,
})
const env = { client, caches, events, clock: systemClock, onError }
// The API server alone refuses pods in a namespace without its account, and no test wants to make that by hand.
const controllers = flags.includes('--no-controllers')
  ? { done: serviceAccountController(env).run(stop.signal) }
  : await startControllers(env, stop.signal)
writeFileSync(readyFile, JSON.stringify({ url: server.url, caPem: server.caPem, adminToken: server.adminToken }), { mode: 0o600 })

process.on('SIGTERM', () => {
  stop.abort()
  void (async () => {
    await controllers.done
    await caches.close()
    await client.close()
    await server.close()
    process.exit(0)
  })()
})
