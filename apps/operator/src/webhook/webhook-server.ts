import { createServer, type Server } from 'node:https'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import { sendJson, sendMethodNotAllowed, sendProblem } from '@thv/http/server/respond'
import { createHttpServer } from '@thv/http/server/server'
import type { Certificate } from '@thv/http/tls/certificate'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { KubeClient } from '@thv/kube'
import type { Logger } from '@thv/telemetry/log'
import type { WebhookSettings } from '../operator-settings.ts'
import { keepCertificates } from './certificate-keeper.ts'

export interface WebhookDeps {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  readonly lifecycle: Lifecycle
  readonly isLeader: () => boolean
  readonly namespace: string
}

export const ADMISSION_PATH = '/validate'
/** A review holds the object and the one before it, each at most as large as etcd takes. */
const MAX_REVIEW_BYTES = 4 << 20
/** The port is open to every pod of the cluster: bodies and checks of reviews take bounded memory and time together. */
const MAX_REVIEWS = 8

/** Serves the admission webhook until the lifecycle ends, on all replicas; from the moment on that there is a certificate. */
export function serveWebhook({ address, configuration, secret, hosts }: WebhookSettings, deps: WebhookDeps): void {
  const { client, clock, log, lifecycle, isLeader, namespace } = deps
  const admit = admission()
  let server: Server | undefined
  const keeping = keepCertificates(
    {
      client,
      clock,
      log,
      secret: { namespace, name: secret },
      configuration,
      hosts,
      isLeader,
      async onServing({ certPem: cert, keyPem: key }) {
        if (server === undefined) server = await listen({ certPem: cert, keyPem: key })
        else server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' })
      },
    },
    lifecycle.signal,
  )
  lifecycle.onShutdown('webhook certificate', () => keeping)

  async function listen({ certPem: cert, keyPem: key }: Certificate): Promise<Server | undefined> {
    let secure: Server | undefined
    const http = createHttpServer({
      handler: admit,
      secure: (settings) => {
        secure = createServer({ ...settings, cert, key, minVersion: 'TLSv1.2' })
        return secure
      },
      onError: (error) => log.error('a review could not be answered', { error: errorMessage(error) }),
      limits: { maxConnections: 64, drainIdleMs: 0 },
    })
    const { url } = await http.listen(address)
    lifecycle.onShutdown('webhook', async (signal) => void (await http.drain(signal)))
    log.info('listening', { port: 'webhook', url })
    return secure
  }
}

/** Answers reviews. Over the limit of those under way it answers 503, and the API server does as its failurePolicy says. */
export function admission(): (exchange: Exchange) => Promise<void> {
  let reviews = 0
  return async (exchange) => {
    if (exchange.path !== ADMISSION_PATH) return sendProblem(exchange, 404)
    if (exchange.method !== 'POST') return sendMethodNotAllowed(exchange, 'POST')
    if (reviews >= MAX_REVIEWS) return sendProblem(exchange, 503, { headers: ['Retry-After', '1'] })
    reviews++
    try {
      await review(exchange)
    } finally {
      reviews--
    }
  }
}

async function review(exchange: Exchange): Promise<void> {
  const text = (await readBody(exchange, MAX_REVIEW_BYTES)).toString()
  // Templates and JSON Schema take memory that an operator without virtual servers does not need.
  const { reviewAdmission } = await import('./review-admission.ts')
  const answer = reviewAdmission(parsed(text))
  if (answer === undefined) sendProblem(exchange, 400, { text: 'the body is not an AdmissionReview of admission.k8s.io/v1' })
  else sendJson(exchange, answer)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
