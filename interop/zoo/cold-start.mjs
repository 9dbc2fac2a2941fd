// A legacy server that starts slowly: everything is answered, after 4 s.
import { answer, legacy, serve } from './server.mjs';

setTimeout(() => serve(message => answer(legacy(message))), 4000);
