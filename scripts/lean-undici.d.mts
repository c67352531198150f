export { Agent, buildConnector, Pool } from 'undici'
