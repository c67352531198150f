import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { errorMessage } from '@thv/kernel/errors'
import { fetchDocuments } from './fetch-documents.ts'
import { FETCH_LIMITS, FETCH_MEMORY_MB, type FetchJob, type FetchOutcome } from './fetch-job.ts'

const MARK = 'toolhive-registry-fetch'
/** Beyond the limit of the fetch itself, for the end of the thread. */
const SPARE_MS = 10_000

/**
 * Fetches in a thread of its own with a memory limit: a hostile repository ends that thread, never the operator. Never rejects. The bundle is
 * one file, so this module is found by its own address in both forms.
 */
export function fetchInWorker(job: FetchJob, signal: AbortSignal): Promise<FetchOutcome> {
  const failed = (message: string): FetchOutcome => ({ ok: false, reason: 'FetchFailed', message })
  if (signal.aborted) return Promise.resolve(failed('the sync was stopped'))
  return new Promise((resolve) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { [MARK]: job },
      resourceLimits: { maxOldGenerationSizeMb: FETCH_MEMORY_MB },
    })
    const end = (outcome: FetchOutcome): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(outcome)
      void worker.terminate()
    }
    const stop = () => end(failed('the sync was stopped'))
    const timer = setTimeout(() => end(failed('the source took longer than two minutes')), FETCH_LIMITS.timeoutMs + SPARE_MS)
    signal.addEventListener('abort', stop, { once: true })
    worker.once('message', (outcome: FetchOutcome) => end(outcome))
    worker.once('error', (error: NodeJS.ErrnoException) =>
      end(failed(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'the source needs more memory than a sync may use' : errorMessage(error))),
    )
    worker.once('exit', () => end(failed('the sync ended without a result')))
  })
}

const job = isMainThread ? undefined : (workerData as Readonly<Record<string, FetchJob>> | null)?.[MARK]
if (job !== undefined)
  void fetchDocuments(job, AbortSignal.timeout(FETCH_LIMITS.timeoutMs)).then((outcome) => parentPort?.postMessage(outcome))
