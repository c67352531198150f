import { Pool } from 'undici'
import { callHeaders, callText } from '../proxy/load-messages.ts'
import type { BenchProvider } from './provider.ts'

const TOKENS = 10_000
const AT_A_TIME = 32

/** Calls once with each of 10,000 tokens, so that the runner knows them all. */
export async function knownTokens(url: string, provider: BenchProvider): Promise<void> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: AT_A_TIME })
  const body = callText('modern', 'echo', { id: 1, text: 'x' })
  let next = 0
  const work = async () => {
    while (next < TOKENS) {
      const headers = [...callHeaders('modern', 'echo', undefined), 'authorization', `Bearer ${provider.token(`user_${next++}`)}`]
      const answer = await pool.request({ method: 'POST', path: pathname, headers, body })
      const text = await answer.body.text()
      if (answer.statusCode !== 200) throw new Error(`a known token was answered with ${answer.statusCode}: ${text.slice(0, 200)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, work))
  await pool.close()
}
