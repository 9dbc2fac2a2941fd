// A server that answers initialize with a revision that does not exist.
import { answer, legacy, serve } from './server.mjs';

serve(message => answer(legacy(message, '1999-12-31')));
