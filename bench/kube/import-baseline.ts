import { Agent } from 'undici'
import { reportLife } from './report.ts'

const agent = new Agent({ connections: 1 })
reportLife()
await agent.close()
