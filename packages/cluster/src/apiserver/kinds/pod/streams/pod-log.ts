import { once } from 'node:events'
import { sendEmpty } from '@thv/http/server/respond'
import type { FieldProblem } from '@thv/kube-schema/kind-schema'
import { type ApiCall, flagOf } from '../../../http/request-context.ts'
import { badRequest, forbiddenValue, invalid, invalidValue } from '../../../objects/status-error.ts'
import type { PodLogOptions } from '../pod-streams.ts'
import { podTarget, streamsOf } from './pod-target.ts'

const LOG_OPTIONS = { group: '', kind: 'PodLogOptions', plural: '' }

/** GET …/pods/NAME/log: the text as it comes, no faster than the client takes it. */
export async function sendPodLog(call: ApiCall): Promise<void> {
  const { exchange } = call
  const options = logOptions(call)
  const { target, nodeName } = podTarget(call)
  if (nodeName === '') {
    sendEmpty(exchange, 204)
    return
  }
  const lines = await streamsOf(call).logs(target, { ...options, signal: exchange.signal })
  const { response } = exchange
  if (exchange.closed) return
  response.writeHead(200, ['Content-Type', 'text/plain', 'Cache-Control', 'no-cache, private'])
  // A follower must know that it is connected before the first line comes.
  response.flushHeaders()
  try {
    for await (const bytes of lines) {
      if (exchange.closed) return
      if (bytes.length > 0 && !response.write(bytes)) await once(response, 'drain', { signal: exchange.signal })
    }
    response.end()
  } catch (error) {
    if (!exchange.aborted) throw error // else the client has only stopped reading
  }
}

function logOptions({ query, path, env }: ApiCall): Omit<PodLogOptions, 'signal'> {
  const tailLines = countOf(query, 'tailLines')
  const limitBytes = countOf(query, 'limitBytes')
  const sinceSeconds = countOf(query, 'sinceSeconds')
  const sinceTime = timeOf(query)
  const problems: FieldProblem[] = []
  const positive = (name: string, value: number | undefined) => {
    if (value !== undefined && value <= 0) problems.push(invalidValue(name, value, 'must be greater than 0'))
  }
  if ((tailLines ?? 0) < 0) problems.push(invalidValue('tailLines', tailLines, 'must be greater than or equal to 0'))
  positive('limitBytes', limitBytes)
  if (sinceSeconds !== undefined && sinceTime !== undefined)
    problems.push(forbiddenValue('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified'))
  else positive('sinceSeconds', sinceSeconds)
  if (query.get('stream') !== null) problems.push(forbiddenValue('stream', 'may not be specified'))
  if (problems.length > 0) throw invalid(LOG_OPTIONS, path.name ?? '', problems)
  const since = sinceTime ?? (sinceSeconds === undefined ? undefined : env.clock.now() - sinceSeconds * 1_000)
  return {
    follow: flagOf(query, 'follow'),
    previous: flagOf(query, 'previous'),
    timestamps: flagOf(query, 'timestamps'),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(since === undefined ? {} : { since }),
  }
}

function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? ''
  if (text === '') return undefined
  if (!/^[-+]?\d{1,15}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  return Number(text)
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[-+]\d{2}:\d{2})$/

function timeOf(query: URLSearchParams): number | undefined {
  const text = query.get('sinceTime') ?? ''
  if (text === '') return undefined
  const time = RFC_3339.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) {
    const quoted = JSON.stringify(text)
    throw badRequest(`parsing time ${quoted} as "2006-01-02T15:04:05Z07:00": cannot parse ${quoted} as "2006"`)
  }
  return time
}
