// The parts of undici that our programs need. Its index would bring fetch, WebSockets, caches and mocks into every process: 390 KB of source and
// what they make when they are loaded. A name that is missing here fails the bundling.
import api from 'undici/lib/api/index.js'
import buildConnector from 'undici/lib/core/connect.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
import Pool from 'undici/lib/dispatcher/pool.js'

// As its index does.
Object.assign(Dispatcher.prototype, api)

export { Agent, buildConnector, Pool }
